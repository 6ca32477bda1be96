package persistence

import (
	"slices"

	"castellan/domain/commit"
	"castellan/persistence/engine"
)

// kinds are all writes of all slices, in the order in which they run.
var kinds = engine.Kinds{
	Guards: map[commit.GuardedTable]engine.Versioned{
		commit.UserCredentials: {Table: "users", Column: "cv"},
		commit.AttemptBudget:   {Table: "attempt_budget", Column: "version"},
	},
	Fences: slices.Concat(
		challengeFences,
		passwordFences,
		userFences,
		totpFences,
		resetFences,
		cronKeyFences,
		deviceFences,
	),
	Writes: slices.Concat(
		challengeWrites,
		outboxWrites,
		auditWrites,
		changeWrites,
		idempotencyWrites,
		passwordWrites,
		userWrites,
		sessionWrites,
		totpWrites,
		resetWrites,
		cronKeyWrites,
		geofilterWrites,
		allowedIPWrites,
		deviceWrites,
	),
}
