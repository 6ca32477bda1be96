// Package addressbooktest is the test suite of the contract addressbook.Store, including concurrent writers.
package addressbooktest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/addressbook"
)

// Fixture is an empty store with an existing currency and network.
type Fixture struct {
	Store                 addressbook.Store
	CurrencyID, NetworkID int64
}

type fixture struct {
	Fixture
	Commit commit.Committer
}

// Run checks an implementation of addressbook.Store.
func Run(t *testing.T, open storetest.Open[Fixture]) {
	with := func(t *testing.T) (fixture, commit.Committer) {
		f, c := open(t)
		return fixture{f, c}, c
	}
	storetest.Run(t, with, storetest.Cases[fixture]{
		"RoundTrip":           roundTrip,
		"UniquePerUser":       uniquePerUser,
		"BooksAreApart":       booksAreApart,
		"HoldMakesOthersWait": holdMakesOthersWait,
		"JoinsTransactions":   joinsTransactions,
	})
}

func (f fixture) entry(name, address string) addressbook.Entry {
	at := time.UnixMilli(1_700_000_000_123).UTC()
	return addressbook.Entry{Name: name, Address: address, CurrencyID: f.CurrencyID, NetworkID: f.NetworkID,
		CreatedAt: at, AddressAt: at.Add(time.Hour)}
}

// in runs one write in a transaction.
func (f fixture) in(t *testing.T, do func(ctx context.Context) error) error {
	t.Helper()
	return f.Commit.InTx(t.Context(), do)
}

func (f fixture) insert(t *testing.T, userID string, e addressbook.Entry) (id int64, err error) {
	t.Helper()
	err = f.in(t, func(ctx context.Context) error { id, err = f.Store.Insert(ctx, userID, e); return err })
	return id, err
}

func (f fixture) holds(t *testing.T, userID string, want ...addressbook.Entry) {
	t.Helper()
	got, err := f.Store.Book(t.Context(), userID)
	storetest.Must(t, err)
	if got == nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, addressbook.Book(want)) {
		t.Errorf("the book of %s:\n got %+v\nwant %+v", userID, got, want)
	}
}

func roundTrip(t *testing.T, f fixture, _ commit.Committer) {
	f.holds(t, "u1")
	a, b := f.entry("Ünïcode 'quoted' ? \\ 🙂", "address-1"), f.entry("b", "0xABCDEFabcdef")
	var err error
	a.ID, err = f.insert(t, "u1", a)
	storetest.Must(t, err)
	b.ID, err = f.insert(t, "u1", b)
	storetest.Must(t, err)
	f.holds(t, "u1", a, b)

	a.Name, a.Address, a.AddressAt = "next", "address-2", a.AddressAt.Add(time.Minute)
	storetest.Must(t, f.in(t, func(ctx context.Context) error { return f.Store.Replace(ctx, "u1", a) }))
	f.holds(t, "u1", a, b)
	storetest.Must(t, f.in(t, func(ctx context.Context) error { return f.Store.Replace(ctx, "u1", a) })) // unchanged
	storetest.Must(t, f.in(t, func(ctx context.Context) error { return f.Store.Remove(ctx, "u1", b.ID) }))
	f.holds(t, "u1", a)

	// An id is never reused.
	again, err := f.insert(t, "u1", b)
	storetest.Must(t, err)
	if again <= b.ID {
		t.Errorf("the id %d after %d", again, b.ID)
	}
}

func uniquePerUser(t *testing.T, f fixture, _ commit.Committer) {
	first, err := f.insert(t, "u1", f.entry("a", "0xABCDEFabcdef"))
	storetest.Must(t, err)
	second, err := f.insert(t, "u1", f.entry("A", "0XABCDEFabcdef")) // differs by case only
	storetest.Must(t, err)
	for _, e := range []addressbook.Entry{f.entry("a", "other"), f.entry("other", "0xABCDEFabcdef"),
		f.entry("other", "0xabcdefabcdef")} {
		_, err := f.insert(t, "u1", e)
		storetest.Wants(t, err, fault.RecordAlreadyExist)
		e.ID = second
		storetest.Wants(t, f.in(t, func(ctx context.Context) error { return f.Store.Replace(ctx, "u1", e) }),
			fault.RecordAlreadyExist)
	}
	_, err = f.insert(t, "u2", f.entry("a", "0xABCDEFabcdef"))
	storetest.Must(t, err)
	e := f.entry("a", "0xabcdefABCDEF")
	e.ID = first
	storetest.Must(t, f.in(t, func(ctx context.Context) error { return f.Store.Replace(ctx, "u1", e) }))
}

func booksAreApart(t *testing.T, f fixture, _ commit.Committer) {
	mine := f.entry("a", "address-1")
	var err error
	mine.ID, err = f.insert(t, "u1", mine)
	storetest.Must(t, err)
	for _, who := range []struct {
		user string
		id   int64
	}{{"u2", mine.ID}, {"u1", mine.ID + 1000}, {"u1", 0}, {"u1", -1}} {
		e := f.entry("b", "address-2")
		e.ID = who.id
		storetest.Wants(t, f.in(t, func(ctx context.Context) error { return f.Store.Replace(ctx, who.user, e) }),
			fault.RecordNotFound)
		storetest.Wants(t, f.in(t, func(ctx context.Context) error { return f.Store.Remove(ctx, who.user, who.id) }),
			fault.RecordNotFound)
	}
	f.holds(t, "u1", mine)
	f.holds(t, "u2")
}

// A transaction that locks a book sees everything that earlier holders of the lock have written: a count and an insert
// are atomic.
func holdMakesOthersWait(t *testing.T, f fixture, _ commit.Committer) {
	const racers, room = 16, 5
	var wg sync.WaitGroup
	var mu sync.Mutex
	counts := map[int]int{}
	full := errors.New("full")
	for i := range racers {
		wg.Go(func() {
			err := f.Commit.InTx(t.Context(), func(ctx context.Context) error {
				book, err := f.Store.Hold(ctx, "u1")
				if err != nil {
					return err
				}
				if len(book) >= room {
					return full
				}
				_, err = f.Store.Insert(ctx, "u1", f.entry(fmt.Sprint("n", i), fmt.Sprint("a", i)))
				mu.Lock()
				counts[len(book)]++
				mu.Unlock()
				return err
			})
			if err != nil && !errors.Is(err, full) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	book, err := f.Store.Book(t.Context(), "u1")
	storetest.Must(t, err)
	if len(book) != room || len(counts) != room {
		t.Errorf("%d entries where there is room for %d; they were added to books of %v", len(book), room, counts)
	}
}

func joinsTransactions(t *testing.T, f fixture, _ commit.Committer) {
	refusal := errors.New("no")
	err := f.in(t, func(ctx context.Context) error {
		if book, err := f.Store.Hold(ctx, "u1"); err != nil || len(book) != 0 {
			t.Errorf("%v, %v", book, err)
		}
		e := f.entry("a", "address-1")
		var err error
		e.ID, err = f.Store.Insert(ctx, "u1", e)
		storetest.Must(t, err)
		e.Name = "b"
		storetest.Must(t, f.Store.Replace(ctx, "u1", e))
		book, err := f.Store.Book(ctx, "u1")
		storetest.Must(t, err)
		held, err := f.Store.Hold(ctx, "u1") // a second time
		storetest.Must(t, err)
		if len(book) != 1 || book[0] != e || len(held) != 1 {
			t.Errorf("a transaction does not see its own entry: %+v, %+v", book, held)
		}
		return refusal
	})
	if !errors.Is(err, refusal) {
		t.Fatalf("got %v", err)
	}
	f.holds(t, "u1")
}
