package accounting_test

import (
	"testing"

	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/accounting"
)

// The subject of a journal is its first and its last day in UTC. The end of the period is exclusive.
func TestAbout(t *testing.T) {
	about := (&accounting.Service{}).Integration().About
	for params, want := range map[string]string{
		`{"From":"2026-01-01T00:00:00Z","To":"2026-02-01T00:00:00Z"}`:           "2026-01-01 – 2026-01-31",
		`{"From":"2026-01-01T00:00:00Z","To":"2026-01-02T00:00:00Z"}`:           "2026-01-01",
		`{"From":"2026-01-01T02:00:00+03:00","To":"2026-01-01T04:00:00+03:00"}`: "2025-12-31 – 2026-01-01",
		`{`: "",
	} {
		storetest.Equal(t, about(job.Job{Params: []byte(params)}), want, params)
	}
}
