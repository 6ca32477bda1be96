// Package storetest runs the contract tests of stores: a suite is a table of named cases, and persistence runs it on
// both databases.
//
// Start reading at Run; Race runs concurrent callers.
package storetest

import (
	"errors"
	"fmt"
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

// Value returns the result of a call, as in Value(users.Get(ctx, id))(t). An error fails the test.
func Value[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Must(t, err)
		return v
	}
}

// Err returns the error of a call.
func Err[T any](_ T, err error) error { return err }

// labeled returns the labels that begin the report of a failure, such as the name of a case.
func labeled(labels []any) string { return strings.TrimSuffix(fmt.Sprintln(labels...), "\n") }

// Wants checks the error code.
func Wants(t testing.TB, err error, code fault.Code, labels ...any) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("%s got %v, want %s", labeled(labels), err, code)
	}
}

// Is checks that an error is another one; nil is only nil.
func Is(t testing.TB, err, want error, labels ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s got the error %v, want %v", labeled(labels), err, want)
	}
}

// Fails checks that there is an error, whose text contains a part.
func Fails(t testing.TB, err error, part string, labels ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%s got the error %v, want one with %q", labeled(labels), err, part)
	}
}

// Equal compares values.
func Equal[T comparable](t testing.TB, got, want T, labels ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s\n got %+v\nwant %+v", labeled(labels), got, want)
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

// Same compares values at any depth, and distinguishes nil from empty ones.
func Same(t testing.TB, got, want any, labels ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\n got %+v\nwant %+v", labeled(labels), got, want)
	}
}

// Contains checks that a text has a part.
func Contains(t testing.TB, text, part string, labels ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s lacks %q: %s", labeled(labels), part, text)
	}
}

// Lacks checks that a text does not have a part.
func Lacks(t testing.TB, text, part string, labels ...any) {
	t.Helper()
	if strings.Contains(text, part) {
		t.Errorf("%s has %q: %s", labeled(labels), part, text)
	}
}

// OneWins runs do n times at once. One call must succeed, and the others must be refused with the code.
func OneWins(t testing.TB, n int, code fault.Code, do func(i int) error) {
	t.Helper()
	Equal(t, Race(t, n, code, do), 1, "successes")
}

// Race runs do n times at once and returns how often it succeeded; every failure
// must have the code.
func Race(t testing.TB, n int, code fault.Code, do func(i int) error) (won int) {
	t.Helper()
	return race(n, do, func(err error) { Wants(t, err, code) })
}

// RaceOfFences is Race where every failure must be commit.ErrFenced.
func RaceOfFences(t testing.TB, n int, do func(i int) error) (won int) {
	t.Helper()
	return race(n, do, func(err error) { Is(t, err, commit.ErrFenced) })
}

func race(n int, do func(i int) error, refused func(error)) (won int) {
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
				refused(err)
			}
		})
	}
	close(start)
	wg.Wait()
	return won
}
