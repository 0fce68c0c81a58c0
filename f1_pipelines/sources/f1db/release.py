"""An f1db CSV release on disk, as a folder or a zip. Columns are read with their types."""
from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import IO

import pandas as pd

from f1_pipelines.sources.base import SourceError

_MARKER = "f1db-races.csv"


class F1dbRelease:
    """The CSV files of one release."""

    def __init__(self, path: Path | str):
        """
        Args:
            path: Folder that holds `f1db-races.csv`, or a zip of such a folder.

        Raises:
            SourceError: There is no release at `path`, or the zip is truncated.
        """
        self.path = Path(path).expanduser().absolute()
        if self.path.is_dir():
            if not (self.path / _MARKER).is_file():
                raise SourceError(f"{self.path} is no f1db CSV release: it holds no {_MARKER}; unpack f1db-csv.zip "
                                  "there or point F1_F1DB_PATH at the zip")
        elif self.path.is_file():
            self._check_zip()
        else:
            raise SourceError(f"no f1db release at {self.path}: set F1_F1DB_PATH to the folder or zip of an f1db CSV "
                              "release")

    def read(self, name: str, columns: Mapping[str, str], from_year: int = 2018) -> pd.DataFrame:
        """Read columns of `f1db-{name}.csv`, seasons from `from_year` on.

        Args:
            name: For example `races-race-results`.
            columns: Column name -> pandas dtype ("string", or a nullable number such as "Int32", "Float64").
            from_year: Rows with an earlier `year` are dropped, if the file has such a column.

        Raises:
            SourceError: The file or a column is missing, or a value has another type.
        """
        file_name = f"f1db-{name}.csv"
        try:
            with self._open(file_name) as handle:
                # An empty field is f1db's only null: "NA" is text.
                texts = pd.read_csv(handle, dtype="string", keep_default_na=False, na_values=[""], encoding="utf-8")
        except (ValueError, zipfile.BadZipFile, EOFError) as problem:
            raise SourceError(f"{self.path}: {file_name} can't be read as CSV ({problem}); fetch the release again"
                              ) from problem
        missing = [column for column in columns if column not in texts.columns]
        if missing:
            raise SourceError(f"{file_name} lacks the columns {missing}; wanted an f1db release of schema v6, found "
                              f"{list(texts.columns)[:6]}...")
        if "year" in texts.columns:
            texts = texts[pd.to_numeric(texts["year"], errors="coerce") >= from_year]
        return pd.DataFrame({column: self._cast(file_name, texts[column], dtype) for column, dtype in columns.items()})

    @cached_property
    def version(self) -> str:
        """Digest of the races and results files, because f1db's CSV files have no version."""
        digest = hashlib.sha256()
        for name in (_MARKER, "f1db-races-race-results.csv"):
            with self._open(name) as handle:
                digest.update(handle.read())
        return f"f1db sha256:{digest.hexdigest()[:12]}"

    @staticmethod
    def _cast(file_name: str, texts: pd.Series, dtype: str) -> pd.Series:
        try:
            if dtype == "string":
                return texts
            numbers = pd.to_numeric(texts)
            cast = numbers.astype(dtype)
            if (cast != numbers).any():  # pandas truncates 1.5 to 1 here, and wraps a number that is too large
                raise ValueError(f"{texts[(cast != numbers).fillna(False)].iloc[0]!r}")
            return cast
        except (TypeError, ValueError) as problem:
            raise SourceError(f"{file_name}, column {texts.name}: wanted {dtype}, got {problem}; fetch the release "
                              "again") from problem

    def _open(self, file_name: str) -> IO[bytes]:
        if self.path.is_dir():
            file = self.path / file_name
            if not file.is_file():
                raise self._missing(file_name)
            return open(file, "rb")
        with zipfile.ZipFile(self.path) as archive:
            member = next((m for m in archive.namelist() if m.rsplit("/", 1)[-1] == file_name), None)
            if member is None:
                raise self._missing(file_name)
            return archive.open(member)

    def _missing(self, file_name: str) -> SourceError:
        return SourceError(f"{self.path} lacks {file_name}; take a complete f1db CSV release (schema v6)")

    def _check_zip(self) -> None:
        try:
            with zipfile.ZipFile(self.path) as archive:
                damaged = archive.testzip()
                names = {member.rsplit("/", 1)[-1] for member in archive.namelist()}
        except (zipfile.BadZipFile, EOFError) as problem:
            raise SourceError(f"{self.path} is not a complete zip ({problem}); download the release again") from problem
        if damaged:
            raise SourceError(f"{self.path}: {damaged} is damaged; download the release again")
        if _MARKER not in names:
            raise SourceError(f"{self.path} is no f1db CSV release: it holds no {_MARKER}")
