package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/account/password"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/kit/sorting"
	"castellan/domain/proof/device"
	"castellan/domain/session/session"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Sessions struct{ db *engine.DB }

func NewSessions(db *engine.DB) session.Store { return Sessions{db} }

type sessionRow struct {
	bun.BaseModel `bun:"table:session,alias:s"`

	ID          string `bun:",pk"`
	UserID      string
	CreatedAt   int64
	LastSeenAt  int64
	ExpiresAt   int64
	EndedAt     int64
	IP          string
	Country     string
	Brand       string
	Model       string
	Description string
	DeviceID    string
	SV          int64
	AMR         string // separated by spaces
}

func (r sessionRow) session() session.Session {
	return session.Session{ID: r.ID, UserID: r.UserID, CreatedAt: engine.Time(r.CreatedAt),
		LastSeenAt: engine.Time(r.LastSeenAt),
		ExpiresAt:  engine.Time(r.ExpiresAt), EndedAt: engine.Time(r.EndedAt), IP: r.IP, Country: r.Country, Brand: r.Brand,
		Model: r.Model, Description: r.Description, DeviceID: r.DeviceID, SV: r.SV, AMR: strings.Fields(r.AMR)}
}

// keyRow is the key to which a session is bound. It is a table of its own, so that the row of a session without a key
// costs nothing more.
type keyRow struct {
	bun.BaseModel `bun:"table:session_key"`

	ID         string `bun:",pk"` // of the session
	Thumbprint string
}

type renewedRow struct {
	bun.BaseModel `bun:"table:session"`

	ID         string
	UserID     string
	LastSeenAt int64
	ExpiresAt  int64
	UsedAfter  int64
	Thumbprint string
}

// sessionStep is the row of NoOtherSessions, End and Seen.
type sessionStep struct {
	bun.BaseModel `bun:"table:session"`

	ID     string
	UserID string
	At     int64
}

type loginRow struct {
	bun.BaseModel `bun:"table:login_history,alias:l"`

	ID          string `bun:",pk"`
	UserID      string
	CreatedAt   int64
	IP          string
	Country     string
	Brand       string
	Model       string
	Description string
	Success     bool
}

// refusedLoginRow is a line about a refused login. Its columns are null in the other lines, and then zero here.
type refusedLoginRow struct {
	bun.BaseModel `bun:"table:login_history,alias:l"`

	loginRow
	Reason       string
	Attempt      int64
	AttemptLimit int64
	LockedUntil  int64
}

const (
	loginColumns   = "id, user_id, created_at, ip, country, brand, model, description, success"
	refusalColumns = "reason, attempt, attempt_limit"
)

// raisedRow is the part of an account that Revoked reads.
type raisedRow struct {
	bun.BaseModel `bun:"table:users,alias:u"`

	ID   string `bun:",pk"`
	SV   int64
	SVAt int64
}

// bornRow is a session and the credential version that it was made under.
type bornRow struct {
	sessionRow
	CV int64
}

const sessionColumns = "id, user_id, created_at, last_seen_at, expires_at, ended_at, ip, country, brand, model, " +
	"description, device_id, sv, amr"

// They come after userFences, which raise the credential version.
var SessionFences = []engine.Kind{
	// The lock is the one that an update of the account takes: of a birth and a rise
	// of the version one waits for the other. Births of one user wait, too, since a
	// lock that they shared could not become that of user.LoggedIn.
	engine.Fenced("INSERT INTO session ("+sessionColumns+", history) SELECT v."+
		strings.ReplaceAll(sessionColumns, ", ", ", v.")+", TRUE {FROM v} "+
		"WHERE v.cv = (SELECT u.cv FROM users AS u WHERE u.id = v.user_id {FOR NO KEY UPDATE}) "+
		"{RETURNING user_id}",
		func(w session.Add) bornRow {
			return bornRow{sessionRow{ID: w.ID, UserID: w.UserID, CreatedAt: engine.Millis(w.CreatedAt),
				LastSeenAt: engine.Millis(w.LastSeenAt),
				ExpiresAt:  engine.Millis(w.ExpiresAt), EndedAt: engine.Millis(w.EndedAt), IP: w.IP, Country: w.Country,
				Brand: w.Brand,
				Model: w.Model, Description: w.Description, DeviceID: w.DeviceID, SV: w.SV,
				AMR: strings.Join(w.AMR, " ")}, w.CV}
		}),
	// LIKE finds an id among those that are listed: ids hold neither % nor _.
	engine.Fenced("SELECT v.user_id {FROM v} WHERE NOT EXISTS (SELECT 1 FROM session AS s "+
		"JOIN users AS u ON u.id = s.user_id WHERE s.user_id = v.user_id AND s.ended_at = 0 AND s.expires_at > v.at "+
		"AND s.sv >= u.sv AND v.id NOT LIKE '%' || s.id || '%')",
		func(w session.NoOtherSessions) sessionStep {
			return sessionStep{UserID: w.UserID, At: engine.Millis(w.At), ID: strings.Join(w.IDs, " ")}
		}),
	engine.Fenced("UPDATE session SET expires_at = v.expires_at, last_seen_at = v.last_seen_at {FROM v} "+
		"WHERE session.id = v.id AND session.user_id = v.user_id AND session.ended_at = 0 "+
		"AND session.expires_at > v.last_seen_at AND session.last_seen_at > v.used_after "+
		"AND session.sv >= (SELECT u.sv FROM users AS u WHERE u.id = v.user_id) "+
		"AND EXISTS (SELECT 1 FROM session_key AS k WHERE k.id = v.id AND k.thumbprint = v.thumbprint) "+
		"{RETURNING session.id}",
		func(w session.Renewed) renewedRow {
			return renewedRow{ID: w.SessionID, UserID: w.UserID, LastSeenAt: engine.Millis(w.At),
				ExpiresAt: engine.Millis(w.Until), UsedAfter: engine.Millis(w.UsedAfter), Thumbprint: w.Thumbprint}
		}),
}

var SessionWrites = []engine.Kind{
	engine.Update("UPDATE session SET ended_at = v.at {FROM v} "+
		"WHERE session.id = v.id AND session.user_id = v.user_id AND session.ended_at = 0",
		func(w session.End) sessionStep {
			return sessionStep{ID: w.SessionID, UserID: w.UserID, At: engine.Millis(w.At)}
		}),
	engine.Update("UPDATE session SET last_seen_at = v.at {FROM v} "+
		"WHERE session.id = v.id AND session.last_seen_at < v.at",
		func(w session.Seen) sessionStep { return sessionStep{ID: w.SessionID, At: engine.Millis(w.At)} }),
	engine.Insert(func(w session.Bind) keyRow { return keyRow{ID: w.SessionID, Thumbprint: w.Thumbprint} }),
	engine.Update("DELETE FROM session_key {USING v} WHERE session_key.id = v.id",
		func(w session.Unbind) keyRow { return keyRow{ID: w.SessionID} }),
	engine.Insert(func(w session.Remember) loginRow { return loginRowOf(w.Login) }),
	engine.Update("INSERT INTO login_history ("+loginColumns+", "+refusalColumns+", locked_until) SELECT v."+
		strings.ReplaceAll(loginColumns+", "+refusalColumns, ", ", ", v.")+", NULLIF(v.locked_until, 0) {FROM v}",
		func(w session.RememberRefused) refusedLoginRow {
			s := w.Refusal.Standing
			return refusedLoginRow{loginRow: loginRowOf(w.Login), Reason: string(w.Refusal.Reason),
				Attempt: int64(s.Tries), AttemptLimit: int64(s.Limit), LockedUntil: engine.Millis(s.LockedUntil)}
		}),
}

func loginRowOf(l session.Login) loginRow {
	return loginRow{ID: l.ID, UserID: l.UserID, CreatedAt: engine.Millis(l.At), IP: l.IP, Country: l.Country,
		Brand: l.Brand, Model: l.Model, Description: l.Description, Success: l.Success}
}

type refusedRow struct {
	bun.BaseModel `bun:"table:refused_login"`

	ID    string `bun:",pk"`
	Count int64
}

// RefusedDeltas add to a row, or make it. SQLite needs the WHERE to tell the ON of the
// conflict from that of a join.
var RefusedDeltas = []engine.Kind{
	engine.Summed("INSERT INTO refused_login (id, count) SELECT v.id, v.count {FROM v} WHERE TRUE "+
		"ON CONFLICT (id) DO UPDATE SET count = refused_login.count + excluded.count",
		func(w session.Refused) refusedRow { return refusedRow{ID: w.Delta(), Count: w.Count} }),
}

func (s Sessions) TakeRefused(ctx context.Context, before time.Time, limit int) ([]session.Refused, error) {
	conn := s.db.Conn(ctx)
	oldest := conn.NewSelect().Model((*refusedRow)(nil)).Column("id").
		Where("id < ?", session.Refused{Minute: before.Add(time.Minute - 1)}.Delta()).Order("id").Limit(int64(limit))
	var rows []refusedRow
	if err := s.db.Scan(ctx, conn.NewDelete().Model((*refusedRow)(nil)).Where("id IN (?)", oldest).
		Returning("id, count"), &rows); err != nil {
		return nil, err
	}
	sorting.Func(rows, func(a, b refusedRow) int { return strings.Compare(a.ID, b.ID) })
	out := make([]session.Refused, len(rows))
	for i, r := range rows {
		minute, site, _ := strings.Cut(r.ID, " ")
		at, err := time.Parse(session.RefusedMinute, minute)
		if err != nil {
			return nil, fmt.Errorf("refused login: %w", err)
		}
		out[i] = session.Refused{Site: site, Minute: at, Count: r.Count}
	}
	return out, nil
}

var sessions = record.Table[sessionRow, session.Session]{
	Order:  record.Keyset{Columns: "s.created_at, s.id", Descending: true},
	Absent: "there is no such session",
	Join: func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Join("JOIN users AS u ON u.id = s.user_id")
	},
	Record: func(r sessionRow) (session.Session, error) { return r.session(), nil },
}

// living holds for the sessions of a user that have neither ended nor expired.
func living(userID string, now time.Time) []record.Filter {
	return []record.Filter{record.Is("s.user_id", userID), record.Where("s.ended_at = 0"),
		record.Where("s.expires_at > ?", engine.Millis(now)), record.Where("s.sv >= u.sv")}
}

func (s Sessions) Get(ctx context.Context, userID, sessionID string, now time.Time) (session.Session, error) {
	return sessions.Find(ctx, s.db, append(living(userID, now), record.Is("s.id", sessionID))...)
}

var sessionKeys = record.Table[keyRow, string]{
	Absent: "the session has no key",
	Record: func(r keyRow) (string, error) { return r.Thumbprint, nil },
}

func (s Sessions) Bound(ctx context.Context, userID, sessionID string, now time.Time) (session.Session, error) {
	of, err := s.Get(ctx, userID, sessionID, now)
	if err != nil {
		return of, err
	}
	of.Thumbprint, err = sessionKeys.Prepared(ctx, s.db, "id = $1", sessionID)
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = nil
	}
	return of, err
}

func (s Sessions) Proved(ctx context.Context, uses []commit.Write, now time.Time) (bool, error) {
	var ids []string
	for _, w := range uses {
		if see, is := w.(device.See); is {
			ids = append(ids, see.ID)
		}
	}
	return engine.Read(ctx, s.db, s.db.Conn(ctx).NewSelect().Table("device_proof").Where("id IN (?)", bun.List(ids)).
		Where("expires_at > ?", engine.Millis(now)).Exists)
}

func (s Sessions) List(ctx context.Context, userID string, now time.Time, limit int) ([]session.Session, error) {
	return sessions.List(ctx, s.db, record.Part{Where: living(userID, now), Limit: limit})
}

func (s Sessions) Count(ctx context.Context, userID string, now time.Time) (int, error) {
	return sessions.Count(ctx, s.db, living(userID, now)...)
}

func (s Sessions) Revoked(ctx context.Context, since time.Time) ([]session.Revocation, error) {
	db := s.db.Conn(ctx)
	var ended []sessionRow
	err := s.db.Scan(ctx, db.NewSelect().Model(&ended).Column("id", "user_id", "ended_at").Where("ended_at > 0").
		Where("ended_at >= ?", engine.Millis(since)))
	if err != nil {
		return nil, err
	}
	var raised []raisedRow
	err = s.db.Scan(ctx, db.NewSelect().Model(&raised).Column("id", "sv", "sv_at").Where("sv_at > 0").
		Where("sv_at >= ?", engine.Millis(since)))
	if err != nil {
		return nil, err
	}
	out := make([]session.Revocation, 0, len(ended)+len(raised))
	for _, r := range ended {
		out = append(out, session.Revocation{UserID: r.UserID, SessionID: r.ID, At: engine.Time(r.EndedAt)})
	}
	for _, r := range raised {
		out = append(out, session.Revocation{UserID: r.ID, SV: r.SV, At: engine.Time(r.SVAt)})
	}
	return out, nil
}

// lines are the lines of the login history: a session is one until it is purged. A trigger on the deletion of a session
// moves its line to login_history in the same transaction.
const lines = "(SELECT " + loginColumns + ", " + refusalColumns + ", locked_until FROM login_history UNION ALL " +
	"SELECT id, user_id, created_at, ip, country, brand, model, description, TRUE, NULL, NULL, NULL, NULL " +
	"FROM session WHERE history) AS l"

// logins is the history of logins, newest first: ids sort by creation.
var logins = record.Table[refusedLoginRow, session.Login]{
	Order:  record.Keyset{Columns: "id", Descending: true},
	Join:   func(q *bun.SelectQuery) *bun.SelectQuery { return q.ModelTableExpr(lines) },
	Record: refusedLoginRow.login,
}

// refusedLogins is the same without the sessions, which are completed logins.
var refusedLogins = record.Table[refusedLoginRow, session.Login]{
	Order:  record.Keyset{Columns: "id", Descending: true},
	Record: refusedLoginRow.login,
}

func (r refusedLoginRow) login() (session.Login, error) {
	return session.Login{ID: r.ID, UserID: r.UserID, At: engine.Time(r.CreatedAt), IP: r.IP, Country: r.Country,
		Brand: r.Brand, Model: r.Model, Description: r.Description, Success: r.Success,
		Refusal: session.Refusal{Reason: session.Reason(r.Reason), Standing: password.Standing{Tries: int(r.Attempt),
			Limit: int(r.AttemptLimit), LockedUntil: engine.Time(r.LockedUntil)}}}, nil
}

func (s Sessions) Logins(ctx context.Context, userID string,
	q page.Query[session.LoginPlace]) (page.Of[session.Login], error) {
	return record.ListPage(ctx, s.db, logins, q, record.ByID, []record.Filter{record.Is("user_id", userID)})
}

func (s Sessions) LoginsFrom(ctx context.Context, ip string, limit int) ([]session.Login, error) {
	return logins.List(ctx, s.db, record.Part{Where: []record.Filter{record.Is("ip", ip)}, Limit: limit})
}

// refusedFilters are the condition of the index login_history_refused, in its words.
func refusedFilters() []record.Filter { return []record.Filter{record.Where("NOT success")} }

func (s Sessions) RefusedLogins(ctx context.Context, _ struct{},
	q page.Query[session.LoginPlace]) (page.Of[session.Login], error) {
	return record.ListPage(ctx, s.db, refusedLogins, q, record.ByID, refusedFilters())
}

// Ids begin with the instant of their making, so
// what is old lies in a range of the primary key.
func (s Sessions) Purge(ctx context.Context, expired, history time.Time) error {
	return errors.Join(
		s.db.Purge(ctx, "session", "id", "id < ? AND expires_at < ?", id.Before(expired), engine.Millis(expired)),
		s.db.Purge(ctx, "session_key", "id", "id < ? AND NOT EXISTS (SELECT 1 FROM session WHERE session.id = "+
			"session_key.id)", id.Before(expired)),
		s.db.Purge(ctx, "login_history", "id", "id < ? AND created_at < ?", id.Before(history), engine.Millis(history)))
}
