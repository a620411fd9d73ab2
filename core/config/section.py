"""What every mapping of the configuration has in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from pydantic.alias_generators import to_camel


class Section(BaseModel):
    """A mapping of the configuration file: frozen, camelCase or snake_case, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _one_spelling(cls, data: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if isinstance(data, dict):
            for name, field in cls.model_fields.items():
                if field.alias and field.alias != name and {name, field.alias} <= data.keys():
                    raise ValueError(f"{name} and {field.alias} are the same key; keep one")
        return data


@dataclass(frozen=True, slots=True)
class PathOnThisMachine:
    """Marks texts that are absolute paths; the reader of the files expands a leading `~/`."""


@dataclass(frozen=True, slots=True)
class AccountOnThisMachine:
    """Marks texts that name an account; the reader of the files tells a uid from a name."""


NonEmpty = Annotated[str, Field(min_length=1)]
AbsolutePath = Annotated[str, Field(pattern=r"^/"), PathOnThisMachine()]
AccountName = Annotated[str, Field(min_length=1), AccountOnThisMachine()]
Secret = Annotated[SecretStr, Field(min_length=1)]
