"""Causes of a trial's end, as Harbor classifies errors, and the consequence of each cause in the model.

Source: ``harbor/models/trial/error_policy.py`` in the wheels of Harbor 0.25.0, for the causes, and 0.26.0, for the
consequences (Apache-2.0). ``harbor_failed`` is the cause of failures of any harness, not Harbor alone. Classes of
verifiers 0.4, SWE-agent, mini-swe-agent, inspect_ai, Terminal-Bench and taxtui are added to Harbor's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SANDBOX: Final = "sandbox_failed"
PROVIDER: Final = "model_provider_failed"
HARNESS: Final = "harbor_failed"
BUDGET: Final = "agent_exhausted_budget"
REFUSED: Final = "agent_refused_task"
VERIFIER: Final = "verifier_failed"
CANCELLED: Final = "cancelled"
UNCLASSIFIED: Final = "unclassified"

RETRIED: Final = "retried"
KEPT: Final = "kept"
DROPPED: Final = "dropped"


class CausePolicy(NamedTuple):
    """Consequences of a cause."""

    retry: bool  # whether the harness tries again
    grade: bool  # whether the verifier still runs
    reward_valid: bool  # whether the reward measures the agent

    @property
    def treatment(self) -> str:
        return KEPT if self.reward_valid else RETRIED if self.retry else DROPPED


CAUSE_POLICIES: Final[dict[str, CausePolicy]] = {
    SANDBOX: CausePolicy(retry=True, grade=False, reward_valid=False),
    PROVIDER: CausePolicy(retry=True, grade=True, reward_valid=False),
    HARNESS: CausePolicy(retry=False, grade=False, reward_valid=False),
    BUDGET: CausePolicy(retry=False, grade=True, reward_valid=True),
    REFUSED: CausePolicy(retry=False, grade=True, reward_valid=True),
    VERIFIER: CausePolicy(retry=False, grade=True, reward_valid=False),
    CANCELLED: CausePolicy(retry=False, grade=False, reward_valid=False),
    UNCLASSIFIED: CausePolicy(retry=True, grade=True, reward_valid=False),
}
"""Cause → consequences of most errors."""

_FINAL: Final = frozenset(
    {
        *("BadRequestError", "UnprocessableEntityError", "UnsupportedParamsError", "APIResponseValidationError"),
        *("BudgetExceededError", "AgentAuthenticationError", "ModelNotFoundError", "UnsupportedModelParametersError"),
        *("ApiProviderResourceNotFoundError", "AuthenticationError", "PermissionDeniedError", "NotFoundError"),
    }
)
"""Errors of the model's provider that Harbor does not retry."""

_ERRORS: Final[dict[str, tuple[str, ...]]] = {
    SANDBOX: (
        *("EnvironmentStartTimeoutError", "SandboxBuildFailedError", "AgentSetupTimeoutError", "HealthcheckError"),
        *("SandboxLikelyOutOfMemoryError", "MemoryLimitExceededError", "SSHAccessError", "GKEExecStreamClosedError"),
        *("GKEPodNotFoundError", "RuntimeRequestError", "AddTestsDirError", "DownloadVerifierDirError"),
        # taxtui
        *("CreateFailed", "QuotaExceeded", "Throttled", "ReadyTimeout", "ExecFailed", "ExecTimeout", "SandboxLost"),
        *("CleanupFailed", "SubstrateUnavailable"),
        # verifiers, Terminal-Bench, SWE-agent
        *("SandboxError", "AgentInstallationFailed", "EnvironmentExit"),
    ),
    PROVIDER: (
        *("ApiError", "ApiRateLimitError", "ApiInternalServerError", "ApiOverloadedError", "ApiConnectionClosedError"),
        *("ApiResponseStalledError", "UnknownApiError", "NetworkConnectionError", "ApiConnectionError"),
        *("ApiUsageLimitError", "RateLimitError", "InternalServerError", "ServiceUnavailableError"),
        *("APIConnectionError", "APIError", "Timeout", *sorted(_FINAL)),
        *("ProviderError", "LlmParseError", "ApiExit"),
    ),
    HARNESS: (
        *("ServiceOperationsUnsupportedError", "VercelScopeError", "DspyImportError", "MissingExtraError"),
        *("RegradeError", "InterceptionError", "TunnelError", "ToolsetError", "EnvError", "TaskError"),
    ),
    BUDGET: (
        *("AgentTimeoutError", "ContextWindowExceededError", "OutputTokenExceededError"),
        *("ContextLengthExceededError", "OutputLengthExceededError"),
        # mini-swe-agent, inspect_ai, SWE-agent
        *("LimitsExceeded", "TimeExceeded", "TotalExecutionTimeExceeded", "CostLimit"),
    ),
    REFUSED: ("AgentSafetyRefusalError", "ContentPolicyViolationError"),
    VERIFIER: (
        *("VerifierTimeoutError", "RewardFileNotFoundError", "RewardFileEmptyError", "VerifierOutputParseError"),
        *("TestTimeout", "ParseError"),
    ),
    CANCELLED: ("CancelledError", "KeyboardInterrupt"),
}
_STARTING: Final = ("create", "reset", "ready", "preload")
CAUSE_OF: Final = {error: cause for cause, errors in _ERRORS.items() for error in errors}
"""Class of an error, without the module → cause."""


def cause_of(error: str, phase: str = "") -> str:
    """Return the cause of an error class; an unknown class during a start is ``sandbox_failed``."""
    return CAUSE_OF.get(error.rpartition(".")[2], SANDBOX if phase in _STARTING else UNCLASSIFIED)


def policy_of(cause: str, error: str = "") -> CausePolicy:
    """Return the consequences of a cause, for one class of errors."""
    policy = CAUSE_POLICIES.get(cause, CAUSE_POLICIES[UNCLASSIFIED])
    final = cause == PROVIDER and error.rpartition(".")[2] in _FINAL
    return policy._replace(retry=False) if final else policy


def recorded_cause(outcome: str, error: str, phase: str, cause: str) -> str:
    """Return the cause of a recorded trial, or "" without an error or in a file from before causes."""
    if cause in CAUSE_POLICIES:
        return cause
    if outcome in ("cancelled", "interrupted"):
        return CANCELLED
    return cause_of(error, phase) if error or outcome != "ok" else ""
