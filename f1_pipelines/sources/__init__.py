"""Where race weekends come from. Every source yields the same validated tables."""
