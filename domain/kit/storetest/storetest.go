// Package storetest runs the contract tests of stores: a suite is a table of named cases, and persistence runs it on
// both databases.
//
// Start reading at Run; Race runs concurrent callers.
package storetest

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// Open returns an empty store S, alone or in a struct with related stores, and the committer whose transactions it
// joins. Both are closed at the end of the test.
type Open[S any] func(t *testing.T) (S, commit.Committer)

// Cases are the tests of a contract by name. Each case gets its own stores from Open.
type Cases[S any] map[string]func(t *testing.T, s S, c commit.Committer)

// Run runs each case of a suite as a subtest.
func Run[S any](t *testing.T, open Open[S], cases Cases[S]) {
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			s, c := open(t)
			cases[name](t, s, c)
		})
	}
}

// Must fails the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Wants checks the error code.
func Wants(t testing.TB, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

// WantsFields checks the fields named by a refusal, separated by spaces; "" for none.
func WantsFields(t testing.TB, err error, fields string) {
	t.Helper()
	var got []string
	var f *fault.Error
	if errors.As(err, &f) {
		for _, p := range f.Fields {
			got = append(got, p.Field)
		}
	}
	if strings.Join(got, " ") != fields || fields == "" && err != nil {
		t.Errorf("got %v, want a refusal of %q", err, fields)
	}
}

// Same compares values and distinguishes nil from empty ones.
func Same(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

// Race runs do n times at once and returns how often it succeeded; every failure
// must have the code.
func Race(t testing.TB, n int, code fault.Code, do func(i int) error) (won int) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			err := do(i)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else {
				Wants(t, err, code)
			}
		})
	}
	close(start)
	wg.Wait()
	return won
}
