package persistence

import (
	"slices"
	"time"

	"castellan/domain/kit/commit"
	"castellan/persistence/access"
	"castellan/persistence/delivery"
	"castellan/persistence/engine"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/office"
	"castellan/persistence/people"
)

// kinds are all writes of all slices, in the order in which they run.
func kinds(now func() time.Time) engine.Kinds {
	return engine.Kinds{
		Guards: map[commit.GuardedTable]engine.Versioned{
			commit.UserCredentials: {Table: "users", Column: "cv"},
			commit.AttemptBudget:   {Table: "attempt_budget", Column: "version"},
		},
		Fences: slices.Concat(
			access.ChallengeFences(now),
			access.PasswordFences(now),
			access.UserFences,
			access.SessionFences,
			access.TotpFences,
			access.ResetFences,
			access.CronKeyFences,
			access.GatewayFences,
			access.DeviceFences,
			access.PasskeyFences,
			kit.JobFences,
			money.LedgerFences,
			money.TransactionFences,
			money.BlockageFences,
			access.PushFences,
			kit.IntegrationFences,
			access.ErrandFences,
			access.RememberedFences,
			people.IntakeFences,
		),
		Writes: slices.Concat(
			access.ChallengeWrites,
			delivery.OutboxWrites,
			kit.AuditWrites,
			kit.ChangeWrites(now),
			kit.IdempotencyWrites,
			access.PasswordWrites(now),
			access.UserWrites,
			access.StandingWrites,
			access.SessionWrites,
			access.TotpWrites,
			access.ResetWrites,
			access.CronKeyWrites,
			access.GatewayWrites,
			access.GeofilterWrites,
			access.AllowedIPWrites,
			access.DeviceWrites,
			access.PasskeyWrites,
			money.RateWrites(now),
			money.ProviderWrites,
			money.BalanceWrites,
			delivery.NotificationWrites,
			kit.JobWrites,
			money.LedgerWrites,
			money.TransactionWrites,
			access.ProfileWrites,
			money.BlockageWrites,
			people.StatusWrites,
			access.PushWrites,
			kit.IntegrationWrites,
			office.ContractWrites,
			access.ErrandWrites,
			access.RememberedWrites,
			people.IntakeWrites,
			access.ImportedHashWrites,
		),
		Deltas: slices.Concat(money.LedgerDeltas, access.RefusedDeltas),
	}
}
