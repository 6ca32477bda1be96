package persistence

import (
	"slices"
	"time"

	"castellan/domain/commit"
	"castellan/persistence/delivery"
	"castellan/persistence/engine"
	"castellan/persistence/kit"
)

// kinds are all writes of all slices, in the order in which they run.
func kinds(now func() time.Time) engine.Kinds {
	return engine.Kinds{
		Guards: map[commit.GuardedTable]engine.Versioned{
			commit.UserCredentials: {Table: "users", Column: "cv"},
			commit.AttemptBudget:   {Table: "attempt_budget", Column: "version"},
		},
		Fences: slices.Concat(
			challengeFences(now),
			passwordFences(now),
			userFences,
			sessionFences,
			totpFences,
			resetFences,
			cronKeyFences,
			deviceFences,
			kit.JobFences,
			ledgerFences,
			transactionFences,
			blockageFences,
			pushFences,
		),
		Writes: slices.Concat(
			challengeWrites,
			delivery.OutboxWrites,
			kit.AuditWrites,
			kit.ChangeWrites(now),
			kit.IdempotencyWrites,
			passwordWrites(now),
			userWrites,
			standingWrites,
			sessionWrites,
			totpWrites,
			resetWrites,
			cronKeyWrites,
			geofilterWrites,
			allowedIPWrites,
			deviceWrites,
			rateWrites(now),
			providerWrites,
			balanceWrites,
			delivery.NotificationWrites,
			kit.JobWrites,
			ledgerWrites,
			transactionWrites,
			profileWrites,
			blockageWrites,
			statusWrites,
			pushWrites,
			kit.IntegrationWrites,
			contractWrites,
		),
		Deltas: slices.Concat(ledgerDeltas, refusedDeltas),
	}
}
