package factor

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/id"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type pushRow struct {
	bun.BaseModel `bun:"table:push,alias:t"`

	ChallengeID string `bun:",pk"`
	UserID      string
	Number      int64
	SentAt      int64
	State       int16
	SettledAt   int64
}

// settledPush is the part of a push that its end changes.
type settledPush struct {
	ChallengeID string
	State       int16
	SettledAt   int64
}

var PushFences = []engine.Kind{
	engine.FencedInsert("ON CONFLICT (user_id, number) DO NOTHING {RETURNING user_id || '/' || number}",
		func(w challenge.SendPush) pushRow {
			return pushRow{ChallengeID: w.ChallengeID, UserID: w.UserID, Number: w.Number, SentAt: w.SentAt,
				State: int16(w.State), SettledAt: w.SettledAt}
		}),
}

var PushWrites = []engine.Kind{
	engine.Update("UPDATE push SET state = v.state, settled_at = v.settled_at {FROM v} "+
		"WHERE push.challenge_id = v.challenge_id", func(w challenge.SettlePush) settledPush {
		return settledPush{ChallengeID: w.ChallengeID, State: int16(w.State), SettledAt: w.At}
	}),
}

// The newest of all tells which number is next,
// so it is read also when it was approved; of the latest no number may be missing that
// is there.
func (s Challenges) Pushes(ctx context.Context, userID string, max int, since time.Time) ([]challenge.Push, error) {
	var rows []pushRow
	err := s.db.Find(ctx, &rows, "user_id = $1 AND "+
		"(state <> 1 OR sent_at >= $3 OR number = (SELECT MAX(n.number) FROM push AS n WHERE n.user_id = $1) OR "+
		"number = (SELECT MAX(o.number) FROM push AS o WHERE o.user_id = $1 AND o.sent_at < $3))",
		"number DESC LIMIT $2", userID, int64(max)+22, engine.Millis(since))
	return record.Each(rows, func(r pushRow) challenge.Push {
		return challenge.Push{ChallengeID: r.ChallengeID, UserID: r.UserID, Number: r.Number, SentAt: r.SentAt,
			State: challenge.PushState(r.State), SettledAt: r.SettledAt}
	}), err
}

func (s Challenges) PurgePushes(ctx context.Context, before time.Time) error {
	return s.db.Purge(ctx, "push", "challenge_id", "challenge_id < ?", id.Before(before))
}
