package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// contest is a table that compares programs.
type contest struct {
	title string
	names []string
	of    []series
	rows  []contestRow
}

type contestRow struct{ about, unit, series string }

// contest adds a table to the report.
func (r *report) contest(title string, all []*contender) *contest {
	c := &contest{title: title}
	for _, p := range all {
		c.names, c.of = append(c.names, p.name), append(c.of, p.of)
	}
	r.contests = append(r.contests, c)
	return c
}

// row adds the medians of a series. The values of the further programs are also shown as multiples of the first one's:
// the median of the multiples of each round, and their range.
func (c *contest) row(about, unit, series string) {
	c.rows = append(c.rows, contestRow{about, unit, series})
}

func (c *contest) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\n  %s\t\t%s", c.title, c.names[0])
	for _, name := range c.names[1:] {
		fmt.Fprintf(t, "\t%s\t%s/%s\t", name, name, c.names[0])
	}
	fmt.Fprintln(t)
	for _, row := range c.rows {
		fmt.Fprintf(t, "  %s\t%s\t%s", row.about, row.unit, figure(median(c.of[0][row.series])))
		for _, of := range c.of[1:] {
			m := multiples(of[row.series], c.of[0][row.series])
			fmt.Fprintf(t, "\t%s\t%s\t%s … %s", figure(median(of[row.series])), figure(median(m)), figure(slices.Min(m)),
				figure(slices.Max(m)))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

// multiples returns the samples of one series as multiples of those of another, round by round.
func multiples(of, base []float64) []float64 {
	out := make([]float64, min(len(of), len(base)))
	for i := range out {
		out[i] = of[i] / base[i]
	}
	return out
}
