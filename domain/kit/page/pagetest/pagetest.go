// Package pagetest tests that a store reads a growing list by the contract of package page.
package pagetest

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
)

// Check reads the records matching a filter, at once and in pages of several sizes, with and without a count: no page
// may lose or repeat a record.
func Check[F, M any, T page.Marked[M]](t *testing.T,
	read func(context.Context, F, page.Query[M]) (page.Of[T], error), filter F, want []T) {
	t.Helper()
	check(t, read, filter, want, false)
}

// CheckBoth is Check, and the same with the oldest records first.
func CheckBoth[F, M any, T page.Marked[M]](t *testing.T,
	read func(context.Context, F, page.Query[M]) (page.Of[T], error), filter F, want []T) {
	t.Helper()
	check(t, read, filter, want, false)
	oldest := slices.Clone(want)
	slices.Reverse(oldest)
	check(t, read, filter, oldest, true)
}

func check[F, M any, T page.Marked[M]](t *testing.T,
	read func(context.Context, F, page.Query[M]) (page.Of[T], error), filter F, want []T, oldest bool) {
	t.Helper()
	for _, limit := range []int{0, 1, 2, 3, max(1, len(want)), len(want) + 1} {
		q := page.Query[M]{Limit: limit, Count: limit%2 == 1, Oldest: oldest}
		var got []T
		for more := true; more; {
			p, err := read(t.Context(), filter, q)
			storetest.Must(t, err)
			if limit > 0 && len(p.Records) > limit || p.More && len(p.Records) != limit {
				t.Fatalf("%+v: a page of %d records for a limit of %d, more: %v", filter, len(p.Records), limit, p.More)
			}
			total := 0
			if q.Count {
				total = len(want)
			}
			storetest.Equal(t, p.Total, total, filter)
			got, more = append(got, p.Records...), p.More
			if more {
				last := got[len(got)-1].Mark()
				q.After = &last
			}
		}
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, limit %d, oldest first %v:\n got %+v\nwant %+v", filter, limit, oldest, got, want)
		}
	}
}
