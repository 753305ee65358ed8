"""What the configurations of all trainings have in common: checked JSON values, and one error for a wrong one."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError


class TrainingConfig(BaseModel):
    """Configuration of one training; all keys are required, as JSON values.

    A subclass names the error that a wrong configuration raises, and the training in words.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    ERROR: ClassVar[type[ValueError]]
    TRAINING: ClassVar[str]

    @classmethod
    def parse(cls, config: dict) -> Self:
        """Check a flat dict.

        :raises ValueError: ``ERROR``, for a missing, unknown or wrong value
        """
        try:
            return cls.model_validate(config)
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise cls.ERROR(f"configuration of {cls.TRAINING}: {wrong}") from error
