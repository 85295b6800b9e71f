"""PostgreSQL tables as vector sources: columns of pgvector types or of number arrays."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from leakscope.core.audit.sources.protocol import ROWS, Batch, refusal, stack_vectors
from leakscope.core.audit.sources.stores import choose_collection, library, text_field
from leakscope.core.errors import CoreError

_TYPES = {"vector": np.float32, "halfvec": np.float16, "_float4": np.float32, "_float8": np.float64}
"""PostgreSQL's names of column types, and their types of numbers."""


class PostgresSource:
    """A table of a PostgreSQL database: `pgvector:postgresql://user@host/database#table.column`.

    It is read in one read-only transaction, which sees one state of the table. The password comes
    from PGPASSWORD, from PostgreSQL's own files, or from a prompt; never from the address, which
    other users of the computer see in the list of processes.
    """

    def __init__(self, location: str, collection: str = "") -> None:
        library("sqlalchemy", "PostgreSQL databases", "psycopg", "psycopg-binary")
        from sqlalchemy.engine import URL, make_url
        from sqlalchemy.exc import ArgumentError

        try:
            url = make_url(location)
        except (ArgumentError, ValueError) as error:
            raise refusal("pgvector", _FORM) from error
        if url.get_backend_name() not in ("postgresql", "postgres"):
            raise refusal("pgvector", _FORM)
        bare = URL.create("postgresql", url.username, None, url.host, url.port, url.database)
        self.label = f"pgvector:{bare.render_as_string()}" + f"#{collection}" * bool(collection)
        if url.password or any("password" in name for name in url.query):
            raise refusal(
                self.label,
                "leave the password out of the address: other users can see it in the list of "
                "processes. Set PGPASSWORD, or enter it when asked.",
            )
        self.url, self.collection = url.set(drivername="postgresql+psycopg"), collection

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Connect to the database and yield an iterator over batches of the table."""
        sa = library("sqlalchemy", "PostgreSQL databases", "psycopg", "psycopg-binary")
        library("psycopg", "PostgreSQL databases", "psycopg-binary")
        from sqlalchemy.pool import NullPool

        engine = sa.create_engine(
            self.url,
            poolclass=NullPool,
            hide_parameters=True,
            connect_args={"connect_timeout": 20, "password": self._ask_password()},
        )
        try:
            with self._database_errors():
                opened = engine.connect()
            with opened as connection:
                yield self._batches(
                    sa,
                    connection.execution_options(
                        isolation_level="REPEATABLE READ",
                        postgresql_readonly=True,
                        stream_results=True,
                        yield_per=ROWS,
                    ),
                )
        finally:
            engine.dispose()

    def _ask_password(self) -> str | None:
        """Prompt for a password if the server wants one and none is set; else return None."""
        if "PGPASSWORD" in os.environ or not sys.stdin.isatty():
            return None
        import psycopg

        try:
            psycopg.connect(
                self.url.set(drivername="postgresql").render_as_string(), connect_timeout=20
            ).close()
        except psycopg.Error as error:  # reported when the engine connects
            if "password" in str(error).lower():
                return getpass.getpass(f"Password of {self.url.username or 'the database'}: ")
        return None

    @contextmanager
    def _database_errors(self) -> Iterator[None]:
        """Turn database errors within the block into InvalidInputError of one line."""
        try:
            yield
        except CoreError:
            raise
        except Exception as error:
            answer = str(getattr(error, "orig", None) or type(error).__name__).strip()
            line = next(iter(answer.splitlines()), type(error).__name__)[:300]
            raise refusal(
                self.label,
                f"the database answered: {line}. Check address, rights and PGPASSWORD.",
            ) from error

    def _batches(self, sa: Any, connection: Any) -> Iterator[Batch]:
        """Query the table and yield its vectors and texts in batches."""
        with self._database_errors():
            schema, table, column = self._find_column(sa, connection)
            names = _query_column_types(sa, connection, schema, table)
            kind = _TYPES[names[column]]
            keys = [n for n in ("id", "uuid", "key") if n in names]
            texts = [n for n, kind in names.items() if kind in ("text", "varchar", "bpchar")]
            texts = [n for n in texts if n not in keys]
            asked = [sa.cast(sa.column(column), sa.Text).label("vector")]
            asked += [sa.cast(sa.column(n), sa.Text).label(f"other_{n}") for n in keys[:1] + texts]
            found = connection.execute(
                sa.select(*asked)
                .select_from(sa.table(table, schema=schema))
                .where(sa.column(column).is_not(None))
            )
            number, text = 0, None
            for rows in found.partitions(ROWS):
                if text is None:
                    text = text_field(
                        [{n: getattr(row, f"other_{n}") for n in texts} for row in rows[:100]]
                    )
                ids = [
                    str(getattr(row, f"other_{keys[0]}")) if keys else str(number + i)
                    for i, row in enumerate(rows)
                ]
                vectors = stack_vectors(self.label, ids, [row.vector for row in rows], kind)
                number += len(rows)
                row_texts = [getattr(row, f"other_{text}") for row in rows] if text else None
                yield Batch(vectors, ids, row_texts)

    def _find_column(self, sa: Any, connection: Any) -> tuple[str, str, str]:
        """Query the database for the named or only vector column; return schema, table, column."""
        rows = connection.execute(
            sa.text(
                "SELECT table_schema, table_name, column_name, udt_name "
                "FROM information_schema.columns WHERE udt_name = ANY(:kinds) "
                "AND table_schema NOT IN ('pg_catalog', 'information_schema') "
                "ORDER BY 1, 2, ordinal_position"
            ),
            {"kinds": list(_TYPES)},
        ).all()
        places = {f"{t}.{c}" if s == "public" else f"{s}.{t}.{c}": (s, t, c) for s, t, c, _ in rows}
        named = self.collection.removeprefix("public.")
        asked = [n for n in places if n == named or n.startswith(f"{named}.")]
        if self.collection and len(asked) == 1:
            return places[asked[0]]
        return places[
            choose_collection(
                self.label,
                self.collection,
                asked if self.collection and asked else list(places),
                "column of vectors",
                "TABLE.COLUMN",
            )
        ]


_FORM = "write pgvector:postgresql://USER@HOST/DATABASE#TABLE.COLUMN."


def _query_column_types(sa: Any, connection: Any, schema: str, table: str) -> dict[str, str]:
    """Query the columns of a table; return the PostgreSQL type of each by its name."""
    rows = connection.execute(
        sa.text(
            "SELECT column_name, udt_name FROM information_schema.columns "
            "WHERE table_schema = :schema AND table_name = :table ORDER BY ordinal_position"
        ),
        {"schema": schema, "table": table},
    )
    return {row.column_name: row.udt_name for row in rows}
