package account

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/account/password"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/persistence/engine"
	"castellan/persistence/factor"
)

// HashKinds keeps the kinds of the hashes of accounts.
type HashKinds struct{ db *engine.DB }

func NewHashKinds(db *engine.DB) password.KindStore { return HashKinds{db} }

type kindRow struct {
	bun.BaseModel `bun:"table:hash_kind,alias:hash_kind"`

	Kind     string `bun:",pk"`
	Accounts int64
	Peak     int64
}

type censusRow struct {
	bun.BaseModel `bun:"table:hash_census,alias:t"`

	ID        string `bun:",pk"`
	Version   int64
	Seed      string
	Since     int64
	CountedAt int64
}

// HashKindFences are the fenced writes of the census.
var HashKindFences = []engine.Kind{
	engine.FencedByVersion(true, func(w password.SaveCensus) censusRow {
		return censusRow{ID: password.CensusID, Version: max(w.Version, 1), Seed: hex.EncodeToString(w.Seed),
			Since: engine.Millis(w.Since), CountedAt: engine.Millis(w.Counted)}
	}, "seed", "since", "counted_at"),
}

var HashKindWrites = []engine.Kind{
	engine.Update("INSERT INTO hash_kind (kind, accounts, peak) SELECT v.kind, v.accounts, v.peak {FROM v} WHERE TRUE "+
		"ON CONFLICT (kind) DO UPDATE SET accounts = hash_kind.accounts + excluded.accounts, "+
		"peak = hash_kind.peak + excluded.peak", func(w password.UseKind) kindRow {
		return kindRow{Kind: w.Kind.String(), Accounts: w.Accounts, Peak: w.Accounts}
	}),
	engine.Update("UPDATE users SET password_hash = '', must_reset = TRUE {FROM v} "+
		"WHERE users.id = v.id AND substr(users.password_hash, 1, 10) = '$imported$'",
		func(w password.ExpireImported) factor.UserStep { return factor.UserStep{ID: w.UserID} }),
	engine.Each(func(ctx context.Context, tx bun.Tx, w password.SetKinds) error {
		if _, err := tx.NewUpdate().Table("hash_kind").Set("accounts = 0").Where("TRUE").Exec(ctx); err != nil {
			return err
		}
		for _, kind := range slices.Sorted(maps.Keys(w)) {
			r := kindRow{Kind: kind, Accounts: w[kind], Peak: w[kind]}
			if _, err := tx.NewInsert().Model(&r).On("CONFLICT (kind) DO UPDATE").Set("accounts = excluded.accounts").
				Set("peak = CASE WHEN excluded.peak > hash_kind.peak THEN excluded.peak ELSE hash_kind.peak END").
				Returning("NULL").Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	}),
}

func (s HashKinds) Census(ctx context.Context) (c password.Census, err error) {
	var r censusRow
	err = s.db.Find(ctx, &r, "id = $1", "", password.CensusID)
	if fault.CodeOf(err) == fault.RecordNotFound {
		return c, nil
	}
	if err == nil {
		c = password.Census{Version: r.Version, Since: engine.Time(r.Since), Counted: engine.Time(r.CountedAt)}
		if c.Seed, err = hex.DecodeString(r.Seed); err != nil {
			err = fmt.Errorf("hash census: seed: %w", err)
		}
	}
	return c, err
}

// Portions lists the recorded kinds.
func (s HashKinds) Portions(ctx context.Context, limit int) ([]password.Portion, error) {
	var rows []kindRow
	q := s.db.Conn(ctx).NewSelect().Model(&rows).OrderExpr("peak DESC, kind").Limit(int64(limit))
	if err := s.db.Scan(ctx, q); err != nil {
		return nil, err
	}
	portions := make([]password.Portion, len(rows))
	for i, r := range rows {
		kind, err := password.ParseKind(r.Kind)
		if err != nil {
			return nil, err
		}
		portions[i] = password.Portion{Kind: kind, Accounts: r.Accounts, Peak: r.Peak}
	}
	return portions, nil
}

// imported is the condition of the index users_imported.
const imported = "substr(password_hash, 1, 10) = '$imported$'"

// kindOf is the kind of a stored hash, as password.Kind.String writes it. f is the text behind "$imported$", and h the
// text behind the last "$argon2id$v=19$".
const kindOf = "CASE WHEN instr(substr(f, instr(f, '$') + 1), '$') = 0 THEN '' " +
	"ELSE substr(f, 1, instr(f, '$') + instr(substr(f, instr(f, '$') + 1), '$') - 1) END || '+' || " +
	"CASE WHEN instr(h, '$') = 0 THEN '' ELSE substr(h, 1, instr(h, '$') - 1) END"

const hashParts = "CASE WHEN " + imported + " THEN substr(password_hash, 11) ELSE '' END AS f, " +
	"CASE WHEN instr(password_hash, '$argon2id$v=19$') > 0 " +
	"THEN substr(password_hash, instr(password_hash, '$argon2id$v=19$') + 15) ELSE '' END AS h"

// countPart is the number of accounts that one statement of Count reads, which takes tens of milliseconds.
const countPart = 50_000

// Count counts the accounts by the kinds of their hashes.
func (s HashKinds) Count(ctx context.Context, limit int) (map[string]int64, error) {
	count, columns, kind := map[string]int64{}, hashParts, kindOf
	if s.db.Postgres() {
		columns, kind = strings.ReplaceAll(columns, "instr(", "strpos("), strings.ReplaceAll(kind, "instr(", "strpos(")
	}
	for after := ""; ; {
		part, n, last, err := s.countPart(ctx, after, columns, kind)
		if err != nil {
			return nil, err
		}
		for text, accounts := range part {
			_, known := count[text]
			if _, err := password.ParseKind(text); err == nil && (known || len(count) < limit) {
				count[text] += accounts
			}
		}
		if n < countPart {
			return count, nil
		}
		after = last
	}
}

func (s HashKinds) countPart(ctx context.Context, after, columns, kind string) (part map[string]int64, n int,
	last string, err error) {
	var rows []struct {
		Kind     string
		Accounts int64
		Last     string
	}
	db := s.db.Conn(ctx)
	next := db.NewSelect().Table("users").Column("id").ColumnExpr(columns).Where("id > ?", after).Order("id").
		Limit(countPart)
	err = s.db.Scan(ctx, db.NewSelect().TableExpr("(?) AS part", next).ColumnExpr(kind+" AS kind").
		ColumnExpr("COUNT(*) AS accounts").ColumnExpr("MAX(id) AS last").GroupExpr(kind), &rows)
	part = map[string]int64{}
	for _, r := range rows {
		part[r.Kind], n, last = r.Accounts, n+int(r.Accounts), max(last, r.Last)
	}
	return part, n, last, err
}

// Imported counts the accounts that were imported before an instant and have an imported hash.
func (s HashKinds) Imported(ctx context.Context, before time.Time) (n int64, err error) {
	err = s.db.Scan(ctx, s.importedBefore(ctx, before).ColumnExpr("COUNT(*)"), &n)
	return n, err
}

// ImportedUsers lists the ids of such accounts, oldest first.
func (s HashKinds) ImportedUsers(ctx context.Context, before time.Time, limit int) (ids []string, err error) {
	err = s.db.Scan(ctx, s.importedBefore(ctx, before).Column("id").Order("id").Limit(int64(limit)), &ids)
	return ids, err
}

func (s HashKinds) importedBefore(ctx context.Context, before time.Time) *bun.SelectQuery {
	return s.db.Conn(ctx).NewSelect().Table("users").Where(imported).Where("id < ?", id.Before(before))
}
