package people

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/account/user"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/people/standing"
	"castellan/persistence/account"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Standings struct{ db *engine.DB }

var _ standing.Store = Standings{}

func NewStandings(db *engine.DB) Standings { return Standings{db} }

type standingRow struct {
	bun.BaseModel `bun:"table:user_standing,alias:s"`

	UserID      string `bun:",pk"`
	Status      string
	Description string
	Reason      string
	ChangedBy   string
	ChangedAt   int64
}

type findingRow struct {
	bun.BaseModel `bun:"table:aml_finding,alias:f"`

	ID         string `bun:",pk"`
	ExternalID string
	UserID     string
	Status     string
	Source     string
	Reference  string
	Detail     string
	At         int64
}

var (
	findings  = record.Of(record.Table[findingRow, standing.Finding]{Absent: "there is no such finding"}, nil)
	standings = record.Of(record.Table[standingRow, standing.Standing]{},
		record.Names{"ChangedBy": "By", "ChangedAt": "At"})
)

var StatusWrites = []engine.Kind{
	engine.Insert(func(w standing.AddFinding) findingRow { return findings.Row(w.Finding) }),
	engine.Update("INSERT INTO user_standing (user_id, status, description, reason, changed_by, changed_at) "+
		"SELECT v.user_id, v.status, v.description, v.reason, v.changed_by, v.changed_at {FROM v} WHERE TRUE "+
		"ON CONFLICT (user_id) DO UPDATE SET status = excluded.status, description = excluded.description, "+
		"reason = excluded.reason, changed_by = excluded.changed_by, changed_at = excluded.changed_at",
		func(w standing.Put) standingRow { return standings.Row(w.Standing) }),
}

// standingLock is the key of Lock.
const standingLock = 0x7374616e64696e67 // "standing"

func (s Standings) Lock(ctx context.Context) error { return s.db.LockTx(ctx, standingLock) }

func (s Standings) Get(ctx context.Context, userID string) (out standing.Standing, err error) {
	var rows []standingRow
	err = s.db.Ask(ctx, &rows, engine.Query{Where: "user_id = $1"}, userID)
	if err == nil && len(rows) > 0 {
		return standings.Record(rows[0])
	}
	return out, err
}

func (s Standings) Finding(ctx context.Context, findingID string) (standing.Finding, error) {
	return findings.Find(ctx, s.db, record.Is("id", findingID))
}

// riskyFilters leaves those out who are in the parameter AMLCONTROL.
func riskyFilters(postgres bool) []record.Filter {
	ignored := "SELECT e.value FROM parameter AS p, json_each(p.json, '$.ignoredUsers') AS e WHERE p.code = ?"
	if postgres {
		ignored = "SELECT e.value FROM parameter AS p, jsonb_array_elements_text(p.json::jsonb -> 'ignoredUsers') " +
			"AS e (value) WHERE p.code = ?"
	}
	return []record.Filter{record.Where("aml_status <> '" + user.NotRisky + "'"),
		record.Where("u.id NOT IN ("+ignored+")", parameter.AMLControl.Code)}
}

func (s Standings) Risky(ctx context.Context, _ struct{}, p page.Query[user.Place]) (page.Of[user.User], error) {
	return record.ListPage(ctx, s.db, account.Accounts, p, record.ByID, riskyFilters(s.db.Postgres()))
}
