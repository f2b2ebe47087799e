"""An audit of promotions by the database itself: triggers note every alias, stage and name that becomes production, with the
evidence tag as it stands at that very moment, in the same transaction. None of our code is in it."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy

_ATTESTATION = (
    "(SELECT value FROM model_version_tags t WHERE t.name = NEW.name AND t.version = NEW.version "
    "AND t.key = 'privacy_gate.attestation')"
)
_TABLE = (
    "CREATE TABLE promotion_audit (id {serial}, kind VARCHAR(16), name VARCHAR(256), version INTEGER, "
    "value VARCHAR(256), attestation TEXT)"
)
_INTO = "INSERT INTO promotion_audit (kind, name, version, value, attestation)"
_ALIAS = f"{_INTO} VALUES ('alias', NEW.name, NEW.version, NEW.alias, {_ATTESTATION});"
_STAGE = f"{_INTO} VALUES ('stage', NEW.name, NEW.version, NEW.current_stage, {_ATTESTATION});"
# While the new name cascades, versions and tags may stand under either.
_RENAME = (
    f"{_INTO} SELECT 'rename', NEW.name, v.version, OLD.name, (SELECT value FROM model_version_tags t WHERE t.name IN (OLD.name, NEW.name) "
    "AND t.version = v.version AND t.key = 'privacy_gate.attestation') FROM model_versions v "
    "WHERE v.name IN (OLD.name, NEW.name) AND v.current_stage <> 'Deleted_Internal';"
)
_EVENTS = (
    ("alias_set", "AFTER INSERT ON registered_model_aliases", "", _ALIAS),
    ("alias_moved", "AFTER UPDATE ON registered_model_aliases", "", _ALIAS),
    (
        "stage_moved",
        "AFTER UPDATE ON model_versions",
        "NEW.current_stage = 'Production' AND OLD.current_stage <> 'Production'",
        _STAGE,
    ),
    ("renamed", "AFTER UPDATE ON registered_models", "NEW.name LIKE 'live-%' AND NEW.name <> OLD.name", _RENAME),
)


@dataclass(frozen=True)
class Noted:
    """One promotion as the database saw it."""

    kind: str
    name: str
    version: int
    value: str
    attestation: str | None


def install_audit(uri: str) -> None:
    """Create the audit table and its triggers; MLflow's tables must exist."""
    engine = sqlalchemy.create_engine(uri)
    sqlite = engine.dialect.name == "sqlite"
    with engine.begin() as connection:
        connection.exec_driver_sql(_TABLE.format(serial="INTEGER PRIMARY KEY" if sqlite else "SERIAL PRIMARY KEY"))
        for name, event, condition, body in _EVENTS:
            body = body.replace("%", "%%") if not sqlite else body
            when = f"WHEN ({condition}) " if condition else ""
            if sqlite:
                connection.exec_driver_sql(f"CREATE TRIGGER audit_{name} {event} FOR EACH ROW {when}BEGIN {body} END")
            else:
                when = when.replace("%", "%%")
                connection.exec_driver_sql(
                    f"CREATE FUNCTION audit_{name}() RETURNS trigger AS $$ BEGIN {body} RETURN NEW; END $$ LANGUAGE plpgsql"
                )
                connection.exec_driver_sql(
                    f"CREATE TRIGGER audit_{name} {event} FOR EACH ROW {when}EXECUTE FUNCTION audit_{name}()"
                )
    engine.dispose()


def noted(uri: str) -> list[Noted]:
    """Read what the database noted, in order."""
    engine = sqlalchemy.create_engine(uri)
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(
            "SELECT kind, name, version, value, attestation FROM promotion_audit ORDER BY id"
        ).fetchall()
    engine.dispose()
    return [Noted(*row) for row in rows]
