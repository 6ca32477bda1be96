package money

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"castellan/domain/money/transaction"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// countedRow is what movements of an asset add up to. A part of several accounts, destinations or initiators has a row
// for each. A gate has its key as UserID and its version as Number.
type countedRow struct {
	Part, AssetID, Number          int64
	UserID, Destination, Initiator string
	record.SumColumns
}

const (
	countedColumns = "part, user_id, destination, initiator, asset_id, number, hi_high, hi_low, lo_high, lo_low"
	gatePart       = -1
	keptAsset      = -1 // of the row that says since when there are totals
	union          = " UNION ALL "
)

// Counted is one statement. Sums of many accounts are those of totals, and of the movements at both ends of the window.
// If some lack totals for these instants, another statement reads all their movements.
func (s Transactions) Counted(ctx context.Context, gates []string, queries ...transaction.CountedQuery) (
	versions map[string]int64, sums [][]transaction.Counted, err error) {
	if versions, sums = map[string]int64{}, make([][]transaction.Counted, len(queries)); len(gates)+len(queries) == 0 {
		return versions, sums, nil
	}
	var c *counting
	var rows []countedRow
	for more, lacking := true, []transaction.CountedQuery(nil); more; {
		c, rows = newCounting(s.db.Postgres(), gates, queries, lacking), nil
		if err := s.db.Ask(ctx, &rows, c.query(), c.args...); err != nil {
			return nil, nil, err
		}
		kinds := c.lacking(rows)
		more, lacking = len(kinds) > 0, append(lacking, kinds...)
	}
	for _, r := range rows {
		if r.Part == gatePart {
			versions[r.UserID] = r.Number
			continue
		}
		sum, err := r.Sum()
		if err != nil {
			return nil, nil, err
		}
		for _, i := range c.of[r.Part] {
			q, found := queries[i], transaction.Counted{Asset: r.AssetID, Number: r.Number, Sum: sum}
			if q.Destination != "" {
				found.UserID = r.UserID
			}
			if r.AssetID != keptAsset && r.Number != 0 && (q.UserID == "" || q.UserID == r.UserID) &&
				q.Destination == r.Destination && q.Initiator == r.Initiator {
				sums[i] = append(sums[i], found)
			}
		}
	}
	return versions, sums, nil
}

// counting is the statement of Counted.
type counting struct {
	postgres bool
	queries  []transaction.CountedQuery
	kinds    []transaction.CountedQuery // of the parts
	of       [][]int                    // the queries of each part
	first    map[int]int64              // the first slot of each part that reads totals
	texts    []string                   // of the parts, and that of the gates
	args     []any
}

func (c *counting) query() engine.Query {
	return engine.Query{From: "(" + strings.Join(c.texts, union) + ") AS m", Columns: countedColumns,
		Order: "part, asset_id, user_id"}
}

// selecting are the columns by whose values queries select.
var selecting = []string{"user_id", "destination", "initiator"}

func valuesOf(q *transaction.CountedQuery) []*string {
	return []*string{&q.UserID, &q.Destination, &q.Initiator}
}

// kindOf returns what queries of one part have in common.
func kindOf(q transaction.CountedQuery) transaction.CountedQuery {
	for _, value := range valuesOf(&q) {
		if *value != "" {
			*value = "some"
		}
	}
	return q
}

// newCounting makes a part for all queries that differ only in their accounts, destinations or initiators, so that
// statements have few texts. Those of many accounts read totals, but for the kinds that lack them.
func newCounting(postgres bool, gates []string, queries, lacking []transaction.CountedQuery) *counting {
	c := &counting{postgres: postgres, queries: queries, first: map[int]int64{}}
	for i, q := range queries {
		part := slices.Index(c.kinds, kindOf(q))
		if part < 0 {
			part, c.kinds, c.of = len(c.kinds), append(c.kinds, kindOf(q)), append(c.of, nil)
		}
		c.of[part] = append(c.of[part], i)
	}
	for part, kind := range c.kinds {
		first, last := wholeSlots(kind)
		if kind.UserID != "" || kind.Destination != "" || first >= last || slices.Contains(lacking, kind) {
			c.texts = append(c.texts, c.movements(part))
		} else {
			c.first[part] = first
			c.texts = append(c.texts, c.totals(part, first, last))
		}
	}
	if len(gates) > 0 {
		c.texts = append(c.texts, fmt.Sprintf("SELECT %d AS part, id AS user_id, '' AS destination, '' AS initiator, "+
			"0 AS asset_id, version AS number, 0 AS hi_high, 0 AS hi_low, 0 AS lo_high, 0 AS lo_low FROM money_gate "+
			"WHERE id IN (%s)", gatePart, c.list(gates)))
	}
	return c
}

// lacking returns the kinds of parts without totals.
func (c *counting) lacking(rows []countedRow) (kinds []transaction.CountedQuery) {
	for part, first := range c.first {
		if !slices.ContainsFunc(rows, func(r countedRow) bool {
			return r.Part == int64(part) && r.AssetID == keptAsset && r.Number <= first
		}) {
			kinds = append(kinds, c.kinds[part])
		}
	}
	return kinds
}

// values returns the values of a part by which its queries select, by column.
func (c *counting) values(part int) map[string][]string {
	all := map[string][]string{}
	for _, i := range c.of[part] {
		q := c.queries[i]
		for n, value := range valuesOf(&q) {
			if name := selecting[n]; *value != "" && !slices.Contains(all[name], *value) {
				all[name] = append(all[name], *value)
			}
		}
	}
	return all
}

// arg returns the name of an argument.
func (c *counting) arg(value any) string {
	c.args = append(c.args, value)
	return "$" + strconv.Itoa(len(c.args))
}

// list returns the names of values. It repeats one, so that statements have few texts.
func (c *counting) list(values []string) string {
	size := 1
	for size < len(values) {
		size *= 4
	}
	all := make([]string, size)
	for i := range all {
		all[i] = c.arg(values[min(i, len(values)-1)])
	}
	return strings.Join(all, ", ")
}

// endsOf returns the instant from which and that before which a query selects movements; zero: open.
func endsOf(q transaction.CountedQuery) (from, to time.Time) {
	if !q.Until.IsZero() {
		to = q.Until.Add(time.Millisecond)
	}
	return q.After.Add(time.Millisecond), to
}

// movements returns the text of a part that reads all movements of its queries. PostgreSQL plans it for any values, and
// would rather read all movements of the window than search an index for many accounts: it searches for each by itself.
func (c *counting) movements(part int) string {
	q, values := c.kinds[part], c.values(part)
	table, column, where := flowOf(q.Flow)
	from, to := endsOf(q)
	where += " AND " + column + " >= " + c.arg(boundOf(q.Flow, from)) + " AND " + column + " < " +
		c.arg(boundOf(q.Flow, to)) + " AND id <> " + c.arg(q.Except)
	columns, group, each := "", "", ""
	for _, name := range selecting {
		if len(values[name]) == 0 && (name != "user_id" || q.Destination == "") {
			columns += "'' AS " + name + ", "
			continue
		}
		switch some := values[name]; {
		case len(some) > 1 && c.postgres && each == "" && name != "initiator":
			each = "SELECT m.* FROM (SELECT DISTINCT unnest(ARRAY[" + c.list(some) + "])) AS one (of), LATERAL ("
			where += " AND " + name + " = one.of"
		case len(some) > 0:
			where += " AND " + name + " IN (" + c.list(some) + ")"
		}
		if len(values[name]) > 0 && name == "destination" {
			where += " AND destination <> ''" // as the index has it
		}
		columns, group = columns+name+", ", group+", "+name
	}
	text := fmt.Sprintf("SELECT %d AS part, %sasset_id, count(*) AS number, %s FROM %s WHERE %s GROUP BY asset_id%s", part,
		columns, record.Summed("", "", "", ""), table, where, group)
	if each != "" {
		text = each + text + ") AS m"
	}
	return text
}

// Columns of a movement, as money_flow has them.
const (
	plusOne = "asset_id, 1, hi / 1000000000, hi % 1000000000, lo / 1000000000, lo % 1000000000"
	lessOne = "asset_id, -1, -(hi / 1000000000), -(hi % 1000000000), -(lo / 1000000000), -(lo % 1000000000)"
)

// wholeSlots returns the first slot that lies wholly in the window of a query, and the one after the last.
func wholeSlots(q transaction.CountedQuery) (first, last int64) {
	from, to := endsOf(q)
	if first, last = slotOf(from.Add(1<<fine*time.Millisecond-time.Millisecond)), noEnd; !to.IsZero() {
		last = slotOf(to)
	}
	return first, last
}

// totals returns the text of a part that adds up the slots that lie wholly in its window, and the movements before and
// after them.
func (c *counting) totals(part int, first, last int64) string {
	q := c.kinds[part]
	from, to := endsOf(q)
	table, column, where := flowOf(q.Flow)
	flow, except, scope, initiator, of := c.arg(q.Flow.String()), c.arg(q.Except), "''", "''", ""
	if some := c.values(part)["initiator"]; len(some) > 0 {
		in := " IN (" + c.list(some) + ")"
		scope, initiator, of, where = "scope", "initiator", " AND scope"+in, where+" AND initiator"+in
	}
	texts := []string{"SELECT '' AS scope, -1 AS asset_id, since AS number, 0 AS hi_high, 0 AS hi_low, 0 AS lo_high, " +
		"0 AS lo_low FROM money_flow_kept WHERE flow = " + flow}
	for _, ends := range covered(first, last) {
		texts = append(texts, fmt.Sprintf("SELECT %s, asset_id, number, hi_high, hi_low, lo_high, lo_low FROM money_flow "+
			"WHERE flow = %s AND grain = %d AND slot >= %s AND slot < %s%s", scope, flow, ends[0], c.arg(ends[1]),
			c.arg(ends[2]), of))
	}
	begin, end := c.arg(boundOf(q.Flow, timeOf(first))), c.arg(boundOf(q.Flow, timeOf(last)))
	for _, x := range [][4]string{{plusOne, c.arg(boundOf(q.Flow, from)), begin, "<>"},
		{plusOne, end, c.arg(boundOf(q.Flow, to)), "<>"}, {lessOne, begin, end, "="}} {
		texts = append(texts, "SELECT "+initiator+", "+x[0]+" FROM "+table+" WHERE "+where+" AND "+column+" >= "+x[1]+
			" AND "+column+" < "+x[2]+" AND id "+x[3]+" "+except)
	}
	return fmt.Sprintf("SELECT %d AS part, '' AS user_id, '' AS destination, scope AS initiator, %s FROM (%s) AS t "+
		"GROUP BY scope, asset_id", part, summed, strings.Join(texts, union))
}

// covered divides the slots between two instants into at most five ranges, each of a grain and its ends.
func covered(first, last int64) (all [][3]int64) {
	for _, grain := range []int64{fine, medium} {
		up, down := (first+31)>>5, last>>5
		all = append(all, [3]int64{grain, first, min(up<<5, last)}, [3]int64{grain, max(up, down) << 5, last})
		first, last = up, down
	}
	return append(all, [3]int64{coarse, first, last})
}
