package account

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"castellan/domain/account/user"
	"castellan/domain/kit/page"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// The index of accounts has an entry for each account in user_search. On PostgreSQL its words are lexemes of a
// tsvector, on SQLite tokens of an fts5 table; both are in the database itself. Every three successive digits of a
// number are a word that begins with #.  A search has few results or many. Few are read from the index, whatever
// their order. Of more than mostFound, the accounts are read in the order of the list and compared one by one. A
// page is soon full, unless all results are at the end of the list.
var mostFound = 20000 // changed by tests only

// mostUnfolded limits the accounts that a search reads because the index does not have them yet.
const mostUnfolded = 1000

// unfoldedColumns are those that IndexOf reads.
var unfoldedColumns = []string{"id", "name", "surname", "email", "phone", "number"}

func (s Users) searched(ctx context.Context, of user.Query, p page.Query[user.Place]) (record.Filter, error) {
	q := *of.Search
	var rows []userRow
	err := s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Model(&rows).Column(unfoldedColumns...).Where("folded IS NULL").
		OrderExpr("id DESC").Limit(mostUnfolded))
	if err != nil {
		return record.Filter{}, err
	}
	waiting := map[string]bool{}
	var ids []string
	for _, r := range rows {
		waiting[r.ID] = true
		if q.Matches(user.IndexOf(r.user())) {
			ids = append(ids, r.ID)
		}
	}
	written, args := written(q)
	from := "user_search_parts AS p JOIN user_search AS s ON s.n = p.rowid WHERE user_search_parts MATCH ?"
	parts := tokensOf(q)
	if s.db.Postgres() {
		from, parts = "user_search AS s WHERE s.parts @@ CAST(? AS tsquery)", lexemesOf(q)
	}
	var indexed []string
	err = s.db.Scan(ctx, s.db.Conn(ctx).NewRaw("SELECT s.user_id FROM "+from+" AND "+written+" LIMIT ?",
		slices.Concat([]any{parts}, args, []any{mostFound + 1})...), &indexed)
	if err != nil {
		return record.Filter{}, err
	}
	few := len(indexed) <= mostFound
	indexed = slices.DeleteFunc(indexed, func(id string) bool { return waiting[id] })
	if few {
		ids = append(ids, indexed...)
		if only := (user.Query{Search: of.Search, NewestFirst: of.NewestFirst}); !p.Count && reflect.DeepEqual(of, only) {
			ids = pageOf(ids, of.NewestFirst && !p.Oldest, p)
		}
		return record.Among("id", append(ids, "")), nil
	}
	// A scalar subquery is evaluated for each account of the page; the planner cannot turn it into a join.
	return record.Where("(id IN (?) OR folded IS NOT NULL AND (SELECT "+written+
		" FROM user_search AS s WHERE s.user_id = u.id))", append([]any{bun.List(append(ids, ""))}, args...)...), nil
}

// pageOf returns the ids of a page and one more, so that the statement has no other.
func pageOf(ids []string, descending bool, p page.Query[user.Place]) []string {
	slices.Sort(ids)
	if descending {
		slices.Reverse(ids)
	}
	if p.After != nil {
		ids = slices.DeleteFunc(ids, func(id string) bool {
			return id == p.After.ID || (id < p.After.ID) != descending
		})
	}
	if p.Limit > 0 {
		ids = ids[:min(len(ids), p.Limit+1)]
	}
	return ids
}

// written is the condition of a search over the texts of user_search.
func written(q user.Search) (text string, args []any) {
	all := []string{"TRUE"}
	const begins = "s.words LIKE ? ESCAPE '!'"
	for _, w := range q.Words {
		all, args = append(all, begins), append(args, "% "+record.LikeText.Replace(w)+"%")
	}
	for _, d := range q.Digits {
		all, args = append(all, "(s.digits LIKE ? OR "+begins+")"), append(args, "%"+d+"%", "% "+d+"%")
	}
	return strings.Join(all, " AND "), args
}

// grams returns the groups of three digits of a number.
func grams(digits string) (all []string) {
	for i := 0; i+3 <= len(digits); i++ {
		if g := "#" + digits[i:i+3]; !slices.Contains(all, g) {
			all = append(all, g)
		}
	}
	return all
}

// lexemesOf returns a search as a tsquery. The words of a search have no quote and no operator.
func lexemesOf(q user.Search) string {
	return operators(q, func(w string) string { return "'" + w + "':*" }, func(g string) string { return "'" + g + "'" },
		" & ", " | ")
}

// tokensOf returns a search as a query of fts5.
func tokensOf(q user.Search) string {
	return operators(q, func(w string) string { return `"` + w + `"*` }, func(g string) string { return `"` + g + `"` },
		" AND ", " OR ")
}

func operators(q user.Search, begins, is func(string) string, and, or string) string {
	var all []string
	for _, w := range q.Words {
		all = append(all, begins(w))
	}
	for _, d := range q.Digits {
		var of []string
		for _, g := range grams(d) {
			of = append(of, is(g))
		}
		all = append(all, "("+begins(d)+or+"("+strings.Join(of, and)+"))")
	}
	return strings.Join(all, and)
}

// FoldWaiting makes the entries of the accounts that wait for them, at most limit, and returns their number. Accounts
// that another transaction has locked wait for the next call.
func (s Users) FoldWaiting(ctx context.Context, limit int) (n int, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context) error {
		var rows []userRow
		q := s.db.Conn(ctx).NewSelect().Model(&rows).Column(unfoldedColumns...).Where("folded IS NULL").Order("id").
			Limit(int64(limit))
		if s.db.Postgres() {
			q = q.For("NO KEY UPDATE SKIP LOCKED")
		}
		if err := q.Scan(ctx); err != nil {
			return engine.Translate(err)
		}
		if n = len(rows); n == 0 {
			return nil
		}
		us := make([]user.User, n)
		for i, r := range rows {
			us[i] = r.user()
		}
		if s.db.Postgres() {
			return engine.Translate(s.foldTogether(ctx, us))
		}
		for _, u := range us {
			if err := s.fold(ctx, u); err != nil {
				return engine.Translate(err)
			}
		}
		return nil
	})
	return n, err
}

// entry returns the texts of an index entry: the words, each after a blank, and all parts.
func entry(x user.Index) (words, parts string) {
	return " " + strings.Join(x.Words, " "), strings.Join(append(x.Words, grams(x.Digits)...), " ")
}

// foldTogether makes entries on PostgreSQL, in two statements.
func (s Users) foldTogether(ctx context.Context, us []user.User) error {
	var entries, names []string
	var entryArgs, nameArgs []any
	for _, u := range us {
		x := user.IndexOf(u)
		words, parts := entry(x)
		entries = append(entries, "(?, ?, ?, array_to_tsvector(string_to_array(?, ' ')))")
		entryArgs = append(entryArgs, u.ID, words, x.Digits, parts)
		names, nameArgs = append(names, "(?, ?)"), append(nameArgs, u.ID, user.Fold(u.FullName()))
	}
	if _, err := s.db.Conn(ctx).NewRaw("INSERT INTO user_search (user_id, words, digits, parts) VALUES "+
		strings.Join(entries, ", ")+" ON CONFLICT (user_id) DO UPDATE SET words = EXCLUDED.words, "+
		"digits = EXCLUDED.digits, parts = EXCLUDED.parts", entryArgs...).Exec(ctx); err != nil {
		return err
	}
	_, err := s.db.Conn(ctx).NewRaw("UPDATE users SET folded = v.folded FROM (VALUES "+strings.Join(names, ", ")+
		") AS v (id, folded) WHERE users.id = v.id", nameArgs...).Exec(ctx)
	return err
}

// fold makes an entry on SQLite.
func (s Users) fold(ctx context.Context, u user.User) error {
	db := s.db.Conn(ctx)
	x := user.IndexOf(u)
	words, parts := entry(x)
	var n int64
	if err := db.NewRaw("INSERT INTO user_search (user_id, words, digits) VALUES (?, ?, ?) ON CONFLICT (user_id) "+
		"DO UPDATE SET words = excluded.words, digits = excluded.digits RETURNING n", u.ID, words, x.Digits).
		Scan(ctx, &n); err != nil {
		return err
	}
	if _, err := db.NewRaw("DELETE FROM user_search_parts WHERE rowid = ?", n).Exec(ctx); err != nil {
		return err
	}
	if _, err := db.NewRaw("INSERT INTO user_search_parts (rowid, parts) VALUES (?, ?)", n, parts).Exec(ctx); err != nil {
		return err
	}
	_, err := db.NewUpdate().Table("users").Set("folded = ?", user.Fold(u.FullName())).Where("id = ?", u.ID).Exec(ctx)
	return err
}
