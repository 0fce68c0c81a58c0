"""How well an order was predicted: metrics, baselines, protocols and intervals."""
