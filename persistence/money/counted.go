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
// If there are no totals for these instants, another statement reads all movements.
func (s Transactions) Counted(ctx context.Context, gates []string, queries ...transaction.CountedQuery) (
	versions map[string]int64, sums [][]transaction.Counted, err error) {
	if versions, sums = map[string]int64{}, make([][]transaction.Counted, len(queries)); len(gates)+len(queries) == 0 {
		return versions, sums, nil
	}
	var c *counting
	var rows []countedRow
	for totals := true; ; totals = false {
		c, rows = newCounting(s.db.Postgres(), gates, queries, totals), nil
		err := s.db.Ask(ctx, &rows, c.query(), c.args...)
		if err != nil {
			return nil, nil, err
		}
		if c.kept(rows) {
			break
		}
	}
	for _, r := range rows {
		if r.Part == gatePart {
			versions[r.UserID] = r.Number
		}
		if r.Part == gatePart || r.AssetID == keptAsset || r.Number == 0 {
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
			if (q.UserID == "" || q.UserID == r.UserID) && q.Destination == r.Destination && q.Initiator == r.Initiator {
				sums[i] = append(sums[i], found)
			}
		}
	}
	return versions, sums, nil
}

// counting is the statement of Counted.
type counting struct {
	postgres bool
	texts    []string // of the parts, and that of the gates
	args     []any
	of       [][]int       // the queries of each part
	first    map[int]int64 // the first slot of each part that reads totals
}

func (c *counting) query() engine.Query {
	return engine.Query{From: "(" + strings.Join(c.texts, union) + ") AS m", Columns: countedColumns,
		Order: "part, asset_id, user_id"}
}

// newCounting makes a part for each sum that reads totals, and for all queries that differ only in their accounts,
// destinations or initiators.
func newCounting(postgres bool, gates []string, queries []transaction.CountedQuery, totals bool) *counting {
	c, alike := &counting{postgres: postgres, first: map[int]int64{}}, map[transaction.CountedQuery]int{}
	for i, q := range queries {
		if totals && c.totals(q) {
			c.of = append(c.of, []int{i})
			continue
		}
		for _, one := range []*string{&q.UserID, &q.Destination, &q.Initiator} {
			if *one != "" {
				*one = "one of several"
			}
		}
		part, known := alike[q]
		if !known {
			part, c.of, c.texts = len(c.of), append(c.of, nil), append(c.texts, "")
			alike[q] = part
		}
		c.of[part] = append(c.of[part], i)
	}
	for part, text := range c.texts {
		if text == "" {
			c.texts[part] = c.movements(part, queries)
		}
	}
	if len(gates) > 0 {
		c.texts = append(c.texts, fmt.Sprintf("SELECT %d AS part, id AS user_id, '' AS destination, '' AS initiator, "+
			"0 AS asset_id, version AS number, 0 AS hi_high, 0 AS hi_low, 0 AS lo_high, 0 AS lo_low FROM money_gate "+
			"WHERE id IN (%s)", gatePart, c.list(gates)))
	}
	return c
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
func (c *counting) movements(part int, queries []transaction.CountedQuery) string {
	q := queries[c.of[part][0]]
	table, column, where := flowOf(q.Flow)
	from, to := endsOf(q)
	where += " AND " + column + " >= " + c.arg(boundOf(q.Flow, from)) + " AND " + column + " < " +
		c.arg(boundOf(q.Flow, to)) + " AND id <> " + c.arg(q.Except)
	columns, group, each := "", "", ""
	for n, name := range []string{"user_id", "destination", "initiator"} {
		var values []string
		for _, i := range c.of[part] {
			q := queries[i]
			if value := []string{q.UserID, q.Destination, q.Initiator}[n]; value != "" && !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
		if len(values) == 0 && (name != "user_id" || q.Destination == "") {
			columns += "'' AS " + name + ", "
			continue
		}
		switch {
		case len(values) > 1 && c.postgres && each == "" && name != "initiator":
			each = "SELECT m.* FROM (SELECT DISTINCT unnest(ARRAY[" + c.list(values) + "])) AS one (of), LATERAL ("
			where += " AND " + name + " = one.of"
		case len(values) > 0:
			where += " AND " + name + " IN (" + c.list(values) + ")"
		}
		if len(values) > 0 && name == "destination" {
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

// totals adds a part that adds up the slots that lie wholly in the window of a query, and the movements before and
// after them. It is false for a query of an account or a destination, and for a window without such slots.
func (c *counting) totals(q transaction.CountedQuery) bool {
	from, to := endsOf(q)
	first, last := slotOf(from.Add(1<<fine*time.Millisecond-time.Millisecond)), int64(noEnd)
	if !to.IsZero() {
		last = slotOf(to)
	}
	if q.UserID != "" || q.Destination != "" || first >= last {
		return false
	}
	table, column, where := flowOf(q.Flow)
	flow, except, scope, initiator := c.arg(q.Flow.String()), c.arg(q.Except), "", ""
	by := c.arg(q.Initiator)
	if q.Initiator != "" {
		scope, initiator = " AND scope = "+by, " AND initiator = "+by
	}
	part := len(c.of)
	texts := []string{"SELECT -1 AS asset_id, since AS number, 0 AS hi_high, 0 AS hi_low, 0 AS lo_high, 0 AS lo_low " +
		"FROM money_flow_kept WHERE flow = " + flow}
	for _, ends := range covered(first, last) {
		texts = append(texts, fmt.Sprintf("SELECT asset_id, number, hi_high, hi_low, lo_high, lo_low FROM money_flow "+
			"WHERE flow = %s AND grain = %d AND slot >= %s AND slot < %s%s", flow, ends[0], c.arg(ends[1]), c.arg(ends[2]),
			scope))
	}
	begin, end := c.arg(boundOf(q.Flow, timeOf(first))), c.arg(boundOf(q.Flow, timeOf(last)))
	for _, x := range [][4]string{{plusOne, c.arg(boundOf(q.Flow, from)), begin, "<>"},
		{plusOne, end, c.arg(boundOf(q.Flow, to)), "<>"}, {lessOne, begin, end, "="}} {
		texts = append(texts, "SELECT "+x[0]+" FROM "+table+" WHERE "+where+" AND "+column+" >= "+x[1]+" AND "+column+
			" < "+x[2]+" AND id "+x[3]+" "+except+initiator)
	}
	c.texts = append(c.texts, fmt.Sprintf("SELECT %d AS part, '' AS user_id, '' AS destination, "+
		"CAST(%s AS TEXT) AS initiator, %s FROM (%s) AS t GROUP BY asset_id", part, by, summed, strings.Join(texts, union)))
	c.first[part] = first
	return true
}

// kept reports whether there are totals for all parts that read them.
func (c *counting) kept(rows []countedRow) bool {
	n := 0
	for _, r := range rows {
		if first, is := c.first[int(r.Part)]; is && r.AssetID == keptAsset && r.Number <= first {
			n++
		}
	}
	return n == len(c.first)
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
