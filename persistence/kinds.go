package persistence

import (
	"slices"
	"time"

	"castellan/domain/kit/commit"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/engine"
	"castellan/persistence/factor"
	"castellan/persistence/gate"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/office"
	"castellan/persistence/people"
	"castellan/persistence/permit"
	"castellan/persistence/proof"
	"castellan/persistence/session"
)

// kinds are all writes of all slices, in the order in which they run.
func kinds(now func() time.Time) engine.Kinds {
	return engine.Kinds{
		Guards: map[commit.GuardedTable]engine.Versioned{
			commit.UserCredentials: {Table: "users", Column: "cv"},
			commit.AttemptBudget:   {Table: "attempt_budget", Column: "version"},
			commit.UserMoney:       {Table: "users", Column: "money_version", Locked: true},
		},
		Fences: slices.Concat(
			factor.ChallengeFences(now),
			account.PasswordFences(now),
			account.UserFences(now),
			session.SessionFences,
			proof.TotpFences,
			session.ResetFences,
			permit.CronKeyFences,
			gate.GatewayFences,
			proof.DeviceFences,
			factor.PasskeyFences,
			kit.JobFences,
			money.GateFences,
			money.LedgerFences,
			money.TransactionFences,
			money.BlockageFences,
			factor.PushFences,
			kit.IntegrationFences,
			gate.ErrandFences,
			factor.RememberedFences,
			account.HashKindFences,
			people.IntakeFences,
		),
		Writes: slices.Concat(
			factor.ChallengeWrites,
			delivery.OutboxWrites,
			kit.AuditWrites,
			kit.ChangeWrites(now),
			kit.IdempotencyWrites,
			account.PasswordWrites(now),
			account.UserWrites,
			account.StandingWrites,
			session.SessionWrites,
			proof.TotpWrites,
			session.ResetWrites,
			permit.CronKeyWrites,
			gate.GatewayWrites,
			session.GeofilterWrites,
			session.AllowedIPWrites,
			proof.DeviceWrites,
			factor.PasskeyWrites,
			money.RateWrites(now),
			money.ProviderWrites,
			money.BalanceWrites,
			delivery.NotificationWrites,
			kit.JobWrites,
			money.LedgerWrites,
			money.TransactionWrites,
			session.ProfileWrites,
			money.BlockageWrites,
			people.StatusWrites,
			factor.PushWrites,
			kit.IntegrationWrites,
			office.ContractWrites,
			gate.ErrandWrites,
			factor.RememberedWrites,
			people.IntakeWrites,
			account.HashKindWrites,
		),
		Deltas: slices.Concat(money.LedgerDeltas, session.RefusedDeltas),
	}
}
