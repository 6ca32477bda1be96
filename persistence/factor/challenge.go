package factor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Challenges struct{ db *engine.DB }

var _ challenge.Store = Challenges{}

func NewChallenges(db *engine.DB) Challenges { return Challenges{db} }

type challengeRow struct {
	bun.BaseModel `bun:"table:challenge,alias:t"`

	ID        string `bun:",pk"`
	UserID    string
	Action    string
	Flow      string
	State     int16
	CreatedAt int64
	ExpiresAt int64
	TouchedAt int64
	Version   int64
	Body      string
	Command   []byte
	Intent    []byte
}

// openRow is what a user's owner knows of a challenge.
type openRow struct {
	bun.BaseModel `bun:"table:challenge,alias:t"`

	ID        string
	Action    string
	CreatedAt int64
	ExpiresAt int64
}

// sealedRow is the sealed part of a row.
type sealedRow struct {
	bun.BaseModel `bun:"table:challenge,alias:t"`

	Command []byte
	Intent  []byte
}

// challengeStep is the part of a row that a step changes.
type challengeStep struct {
	bun.BaseModel `bun:"table:challenge,alias:t"`

	ID        string `bun:",pk"`
	Version   int64
	State     int16
	TouchedAt int64
	Body      string
}

type budgetRow struct {
	bun.BaseModel `bun:"table:attempt_budget,alias:t"`

	ID        string `bun:",pk"`
	Version   int64
	Body      string
	OTPRow    int
	TOTPRow   int
	UpdatedAt int64
}

type budgetBody struct {
	OTP  []int64 `json:"o,omitempty"`
	TOTP []int64 `json:"t,omitempty"`
}

type outcomeRow struct {
	bun.BaseModel `bun:"table:outcome,alias:t"`

	ChallengeID string `bun:",pk"`
	CreatedAt   int64
	ExpiresAt   int64
	Sealed      []byte
}

func ChallengeFences(now func() time.Time) []engine.Kind {
	return []engine.Kind{
		engine.FencedByVersion(false, func(u challenge.Update) challengeStep {
			return challengeStep{ID: u.ID, Version: u.Version, State: int16(u.State), TouchedAt: engine.Millis(now()),
				Body: engine.WriteJSON(u.Body)}
		}, "state", "touched_at", "body"),
		engine.FencedByVersion(true, func(s challenge.Spend) budgetRow {
			v := s.Version
			if v == 0 {
				v = 1 // inserted
			}
			return budgetRow{ID: s.Key(), Version: v, Body: engine.WriteJSON(budgetBody{s.OTP, s.TOTP}), OTPRow: s.OTPRow,
				TOTPRow: s.TOTPRow, UpdatedAt: engine.Millis(now())}
		}, "body", "otp_row", "totp_row", "updated_at"),
	}
}

var ChallengeWrites = []engine.Kind{
	engine.Insert(func(w challenge.Insert) challengeRow {
		return challengeRow{ID: w.ID, UserID: w.Owner(), Action: w.Action, Flow: string(w.Flow),
			State: int16(w.State), CreatedAt: w.CreatedAt, ExpiresAt: w.ExpiresAt, TouchedAt: w.CreatedAt,
			Version: 1, Body: engine.WriteJSON(w.Body), Command: w.Command, Intent: w.Intent}
	}),
	engine.Insert(func(w challenge.Record) outcomeRow {
		return outcomeRow{ChallengeID: w.ChallengeID, CreatedAt: w.CreatedAt, ExpiresAt: w.ExpiresAt, Sealed: w.Sealed}
	}),
	SetUser("factors_off = users.factors_off | v.n", func(w challenge.SwitchOff) UserStep {
		return UserStep{ID: w.UserID, N: int64(w.Factor)}
	}),
	engine.Several(
		engine.UpdateMany("UPDATE attempt_budget SET otp_row = 0, totp_row = 0, version = attempt_budget.version + 1 "+
			"{FROM v} WHERE attempt_budget.id = v.id", func(w challenge.SwitchOn) (rows []UserStep) {
			for _, key := range w.Keys() {
				rows = append(rows, UserStep{ID: key})
			}
			return rows
		}),
		SetUser("factors_off = 0", func(w challenge.SwitchOn) UserStep { return UserStep{ID: w.UserID} })),
	// The reason is in the body, which only its owner writes: a closed challenge whose
	// body has no reason was superseded.
	engine.Update("UPDATE challenge SET state = v.state, version = challenge.version + 1 {FROM v} "+
		fmt.Sprintf("WHERE challenge.id = v.id AND challenge.state = %d", challenge.Pending),
		func(w challenge.Supersede) supersedeRow { return supersedeRow{w.ID, int16(challenge.Closed)} }),
}

type supersedeRow struct {
	ID    string
	State int16
}

// loadedColumns are those of a challenge without its sealed parts.
const loadedColumns = "id, user_id, action, flow, state, created_at, expires_at, version, body"

func (s Challenges) Load(ctx context.Context, challengeID string) (challenge.Challenge, error) {
	var r challengeRow
	err := s.db.Ask(ctx, &r, engine.Query{Where: "id = $1", Columns: loadedColumns}, challengeID)
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = fault.New(fault.ChallengeNotFound, "there is no such challenge")
	}
	if err != nil {
		return challenge.Challenge{}, err
	}
	return r.challenge()
}

func (r challengeRow) challenge() (challenge.Challenge, error) {
	c := challenge.Challenge{ID: r.ID, UserID: r.UserID, Action: r.Action, Flow: challenge.Flow(r.Flow),
		State: challenge.State(r.State), CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, Version: r.Version}
	if err := json.Unmarshal([]byte(r.Body), &c.Body); err != nil {
		return challenge.Challenge{}, fmt.Errorf("challenge %s: body: %w", r.ID, err)
	}
	if c.State == challenge.Closed && c.Reason == challenge.NotClosed {
		c.Reason = challenge.Superseded
	}
	if !c.Kind.Owned() {
		c.UserID = "" // the column holds its subject
	}
	return c, nil
}

func (s Challenges) Sealed(ctx context.Context, id string) (command, intent []byte, err error) {
	var r sealedRow
	err = s.db.Find(ctx, &r, "id = $1", "", id)
	return r.Command, r.Intent, err
}

func (s Challenges) Budget(ctx context.Context, subject string, flow challenge.Flow) (challenge.Budget, error) {
	b := challenge.Budget{Subject: subject, Flow: flow}
	var r budgetRow
	err := s.db.Find(ctx, &r, "id = $1", "", b.Key())
	switch {
	case fault.CodeOf(err) == fault.RecordNotFound:
		return b, nil
	case err != nil:
		return b, err
	}
	var in budgetBody
	if err := json.Unmarshal([]byte(r.Body), &in); err != nil {
		return b, fmt.Errorf("attempt budget: body: %w", err)
	}
	b.Version, b.OTP, b.TOTP, b.OTPRow, b.TOTPRow = r.Version, in.OTP, in.TOTP, r.OTPRow, r.TOTPRow
	return b, nil
}

func (s Challenges) Outcome(ctx context.Context, id string) (challenge.Outcome, error) {
	var r outcomeRow
	err := s.db.Find(ctx, &r, "challenge_id = $1", "", id)
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = fault.New(fault.ChallengeNotCompleted, "the challenge has no outcome yet")
	}
	return challenge.Outcome{ChallengeID: r.ChallengeID, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt,
		Sealed: r.Sealed}, err
}

func (s Challenges) Open(ctx context.Context, userID string, now time.Time) ([]challenge.Ref, error) {
	var rows []openRow
	err := s.db.Find(ctx, &rows, "user_id = $1 AND state = 0 AND expires_at > $2", "created_at, id", userID,
		engine.Millis(now))
	return record.Each(rows, func(r openRow) challenge.Ref {
		return challenge.Ref{ID: r.ID, Action: r.Action, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt}
	}), err
}

func (s Challenges) Pending(ctx context.Context, userID string, now time.Time) ([]challenge.Insert, error) {
	var rows []challengeRow
	if err := s.db.Find(ctx, &rows, "user_id = $1 AND state = 0 AND expires_at > $2", "created_at DESC, id DESC",
		userID, engine.Millis(now)); err != nil {
		return nil, err
	}
	out := make([]challenge.Insert, len(rows))
	for i, r := range rows {
		c, err := r.challenge()
		if err != nil {
			return nil, err
		}
		out[i] = challenge.Insert{Challenge: c, Command: r.Command, Intent: r.Intent}
	}
	return out, nil
}

// stateRow is what States reads of a challenge.
type stateRow struct {
	bun.BaseModel `bun:"table:challenge"`

	ID    string `bun:"id,pk"`
	State int    `bun:"state"`
}

func (s Challenges) States(ctx context.Context, ids []string) (map[string]challenge.State, error) {
	where, list := "id = ANY($1)", any(ids)
	if !s.db.Postgres() {
		text, err := json.Marshal(ids)
		if err != nil {
			return nil, err
		}
		where, list = "id IN (SELECT value FROM json_each($1))", string(text)
	}
	var rows []stateRow
	if err := s.db.Find(ctx, &rows, where, "", list); err != nil {
		return nil, err
	}
	out := make(map[string]challenge.State, len(rows))
	for _, r := range rows {
		out[r.ID] = challenge.State(r.State)
	}
	return out, nil
}

func (s Challenges) Stuck(ctx context.Context, before time.Time, max int) (ids []string, err error) {
	err = s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Table("challenge").Column("id").Where("state = 1").
		Where("touched_at < ?", engine.Millis(before)).Order("touched_at").Limit(int64(max)), &ids)
	return ids, err
}

// keepEvidence copies the challenges that an answer or a change of credentials has ended.
const (
	keepEvidence = "INSERT INTO evidence (" + evidenceColumns + ") SELECT " + evidenceColumns + " FROM challenge " +
		"WHERE id IN (?) AND state > 0 AND intent IS NOT NULL ON CONFLICT DO NOTHING"
	evidenceColumns = loadedColumns + ", intent"
)

func (s Challenges) Evidence(ctx context.Context, id string) (challenge.Insert, error) {
	var r challengeRow
	err := s.db.Find(ctx, &r, "id = $1", "", id)
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = s.db.Ask(ctx, &r, engine.Query{Where: "id = $1", From: "evidence AS t", Columns: evidenceColumns}, id)
	}
	if fault.CodeOf(err) == fault.RecordNotFound || err == nil && r.Intent == nil {
		err = fault.New(fault.RecordNotFound, "there is no evidence of such a challenge")
	}
	if err != nil {
		return challenge.Insert{}, err
	}
	c, err := r.challenge()
	return challenge.Insert{Challenge: c, Intent: r.Intent}, err
}

func (s Challenges) PurgeEvidence(ctx context.Context, made time.Time) error {
	return s.db.Purge(ctx, "evidence", "id", "id < ?", id.Before(made))
}

// Ids sort by creation, so what is old is a
// range of the primary key.
func (s Challenges) Purge(ctx context.Context, made time.Time) error {
	return errors.Join(
		s.db.PurgeAfter(ctx, keepEvidence, "challenge", "id", "id < ?", id.Before(made)),
		// A row of wrong values has no window, so it stays, but for those of decoys, which any caller can make.
		s.db.PurgePart(ctx, "attempt_budget", "updated_at < ? AND (otp_row = 0 AND totp_row = 0 OR id LIKE ?)",
			engine.Millis(made.Add(-24*time.Hour)), challenge.DecoyMark+"%"))
}

func (s Challenges) PurgeOutcomes(ctx context.Context, now, made time.Time) error {
	return s.db.Purge(ctx, "outcome", "challenge_id", "challenge_id < ? AND expires_at <= ?", id.Before(made),
		engine.Millis(now))
}

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
