package delivery

import (
	"context"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/id"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Outbox struct{ db *engine.DB }

var _ outbox.Store = Outbox{}

func NewOutbox(db *engine.DB) Outbox { return Outbox{db} }

type outboxRow struct {
	bun.BaseModel `bun:"table:outbox,alias:t"`

	ID          string `bun:",pk"`
	ChallengeID string
	MethodID    string
	Generation  int
	UserID      string
	Channel     string
	Destination []byte
	Prefix      string
	Dial        string
	Proven      bool
	State       int16
	CreatedAt   int64
	ExpiresAt   int64
	NextAt      int64
	Attempts    int
	Payload     []byte
	Counted     bool
}

func (r outboxRow) message() outbox.Message {
	return outbox.Message{ID: r.ID, ChallengeID: r.ChallengeID, MethodID: r.MethodID, Generation: r.Generation,
		UserID: r.UserID, Channel: message.Channel(r.Channel), Destination: r.Destination, Prefix: r.Prefix,
		Dial: r.Dial, Proven: r.Proven, State: outbox.State(r.State), CreatedAt: engine.Time(r.CreatedAt),
		ExpiresAt: engine.Time(r.ExpiresAt), LeaseUntil: engine.Time(r.NextAt), Attempts: r.Attempts, Payload: r.Payload,
		Uncounted: !r.Counted}
}

// onceRow is a message that is added where there is none of its id, and the one
// before is older than since.
type onceRow struct {
	outboxRow
	Earlier string
	Since   int64
}

type settleRow struct {
	ID       string
	State    int16
	NextAt   int64
	Attempts int
	Keep     bool
}

const outboxColumns = "id, challenge_id, method_id, generation, user_id, channel, destination, prefix, dial, proven, " +
	"state, created_at, expires_at, next_at, attempts, payload, counted"

func outboxRowOf(m outbox.Message) outboxRow {
	return outboxRow{ID: m.ID, ChallengeID: m.ChallengeID, MethodID: m.MethodID, Generation: m.Generation,
		UserID: m.UserID, Channel: string(m.Channel), Destination: m.Destination, Prefix: m.Prefix,
		Dial: m.Dial, Proven: m.Proven, State: int16(m.State), CreatedAt: engine.Millis(m.CreatedAt),
		ExpiresAt: engine.Millis(m.ExpiresAt), NextAt: engine.Millis(m.LeaseUntil), Attempts: m.Attempts, Payload: m.Payload,
		Counted: !m.Uncounted && m.Channel != message.Push}
}

var OutboxWrites = []engine.Kind{
	engine.Insert(func(w outbox.Add) outboxRow { return outboxRowOf(w.Message) }),
	engine.Update("INSERT INTO outbox ("+outboxColumns+") SELECT v."+strings.ReplaceAll(outboxColumns, ", ", ", v.")+
		" {FROM v} WHERE NOT EXISTS (SELECT 1 FROM outbox o WHERE o.id = v.earlier AND o.created_at > v.since) "+
		"ON CONFLICT (id) DO NOTHING",
		func(w outbox.AddOnce) onceRow {
			return onceRow{outboxRowOf(w.Message), w.Earlier, engine.Millis(w.Since)}
		}),
	engine.Update("UPDATE outbox SET state = v.state, next_at = v.next_at, attempts = v.attempts, "+
		"payload = CASE WHEN v.keep THEN outbox.payload END {FROM v} WHERE outbox.id = v.id",
		func(w outbox.Settle) settleRow {
			return settleRow{ID: w.ID, State: int16(w.State), NextAt: engine.Millis(w.NextAt), Attempts: w.Attempt,
				Keep: w.Keep || w.State == outbox.Queued}
		}),
}

func (s Outbox) Claim(ctx context.Context, now time.Time, lease time.Duration, max int) ([]outbox.Message, error) {
	var rows []outboxRow
	err := s.db.InTx(ctx, func(ctx context.Context) error {
		tx := s.db.Conn(ctx)
		due := tx.NewSelect().Table("outbox").Column("id").Where("state = 0").Where("next_at <= ?", engine.Millis(now)).
			Order("next_at").Limit(int64(max))
		if s.db.Postgres() {
			due = due.For("UPDATE SKIP LOCKED")
		}
		_, err := tx.NewUpdate().Model((*outboxRow)(nil)).ModelTableExpr("outbox AS t").
			Set("next_at = ?", engine.Millis(now.Add(lease))).
			Where("t.id IN (?)", due).Returning("*").Exec(ctx, &rows)
		return err
	})
	return record.Each(rows, outboxRow.message), engine.Translate(err)
}

func (s Outbox) Usage(ctx context.Context, now time.Time, prefix string) (int, error) {
	n, err := engine.Read(ctx, s.db, s.db.Conn(ctx).NewSelect().Table("outbox").Where("counted").Where("NOT proven").
		Where("prefix = ?", prefix).Where("created_at > ?", engine.Millis(now.Add(-time.Hour))).Count)
	return int(n), err
}

func (s Outbox) Spent(ctx context.Context, now time.Time, dial string) (all, unproven int, err error) {
	err = s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Table("outbox").ColumnExpr("COUNT(*) AS sent").
		ColumnExpr("COALESCE(SUM(CASE WHEN proven THEN 0 ELSE 1 END), 0) AS unproven").
		Where("counted").Where("dial <> ''").Where("dial = ?", dial).
		Where("created_at > ?", engine.Millis(now.Add(-24*time.Hour))).
		Where("state <> ?", outbox.Discarded), &all, &unproven)
	return all, unproven, err
}

func (s Outbox) Sendings(ctx context.Context, userID string, since time.Time) ([]outbox.Sending, error) {
	var rows []outboxRow
	err := s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Model(&rows).Column("destination", "proven", "created_at").
		Where("counted").Where("user_id = ?", userID).Where("created_at > ?", engine.Millis(since)).
		Where("state <> ?", outbox.Discarded).Order("created_at"))
	return record.Each(rows, func(r outboxRow) outbox.Sending {
		return outbox.Sending{Destination: r.Destination, Proven: r.Proven, At: r.CreatedAt}
	}), err
}

func (s Outbox) Recent(ctx context.Context, destination []byte, limit int) ([]outbox.Message, error) {
	var rows []outboxRow
	query := s.db.Conn(ctx).NewSelect().Model(&rows).Where("payload IS NOT NULL").Where("state <> ?", outbox.Discarded).
		Order("created_at DESC", "id DESC")
	if destination != nil {
		query = query.Where("destination = ?", destination)
	}
	if limit > 0 {
		query = query.Limit(int64(limit))
	}
	err := query.Scan(ctx)
	return record.Each(rows, outboxRow.message), engine.Translate(err)
}

// The index of what is due holds what is
// queued and nothing else.
func (s Outbox) Backlog(ctx context.Context) (queued int, oldest time.Time, err error) {
	var began int64
	err = s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Table("outbox").ColumnExpr("COUNT(*) AS queued").
		ColumnExpr("COALESCE(MIN(created_at), 0) AS oldest").Where("state = 0"), &queued, &began)
	return queued, engine.Time(began), err
}

func (s Outbox) Erase(ctx context.Context, now time.Time) error {
	return s.db.InTx(ctx, func(ctx context.Context) error {
		db := s.db.Conn(ctx)
		_, err := db.NewUpdate().Table("outbox").Set("state = ?", outbox.Expired).Set("payload = NULL").
			Where("state = 0").Where("expires_at < ?", engine.Millis(now)).Exec(ctx)
		return err
	})
}

// Ids begin with the instant of their making, so
// what is old is a range of the primary key.
func (s Outbox) Purge(ctx context.Context, before time.Time) error {
	return s.db.Purge(ctx, "outbox", "id", "id < ? AND state <> 0", id.Before(before))
}
