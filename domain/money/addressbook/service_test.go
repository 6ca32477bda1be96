package addressbook_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/currency"
)

var errDown = errors.New("the database is down")

// shelf is the book of u1 in memory.
type shelf struct {
	book addressbook.Book
	fail string // the method that fails
	next int64
}

func (s *shelf) err(method string) error {
	if s.fail == method {
		return errDown
	}
	return nil
}

func (s *shelf) Book(_ context.Context, userID string) (addressbook.Book, error) {
	if userID != "u1" {
		return nil, s.err("Book")
	}
	return slices.Clone(s.book), s.err("Book")
}

func (s *shelf) Hold(ctx context.Context, userID string) (addressbook.Book, error) {
	b, _ := s.Book(ctx, userID)
	return b, s.err("Hold")
}

func (s *shelf) Insert(_ context.Context, _ string, e addressbook.Entry) (int64, error) {
	s.next++
	e.ID = s.next
	s.book = append(s.book, e)
	return e.ID, s.err("Insert")
}

func (s *shelf) Replace(_ context.Context, _ string, e addressbook.Entry) error {
	s.book[slices.IndexFunc(s.book, func(o addressbook.Entry) bool { return o.ID == e.ID })] = e
	return s.err("Replace")
}

func (s *shelf) Remove(_ context.Context, _ string, id int64) error {
	s.book = slices.DeleteFunc(s.book, func(o addressbook.Entry) bool { return o.ID == id })
	return s.err("Remove")
}

// coins are Bitcoin and Ether, each on its network.
type coins struct{ currency.Store }

func (coins) Currencies(context.Context, currency.Query) ([]currency.Currency, error) {
	return []currency.Currency{{ID: 1, Code: "BTC", Active: true, Withdraw: true},
		{ID: 2, Code: "ETH", Active: true, Withdraw: true}}, nil
}

func (coins) Networks(context.Context, currency.Query) ([]currency.Network, error) {
	return []currency.Network{{ID: 1, Code: "BTC", Active: true}, {ID: 2, Code: "ETH", Active: true}}, nil
}

func (coins) Pairs(context.Context) ([]currency.Pair, error) {
	return []currency.Pair{{ID: 1, CurrencyID: 1, NetworkID: 1, Active: true, Withdraw: true},
		{ID: 2, CurrencyID: 2, NetworkID: 2, Active: true, Withdraw: true}}, nil
}

const (
	bitcoin = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"
	ether   = "0xde0b295669a9fd93d5f28d9ec85e40f4cb697bae"
)

var (
	now = time.UnixMilli(1_700_000_000_000)
	who = audit.By{UserID: "u1"}
)

type desk struct {
	*addressbook.Service
	shelf *shelf
	units *storetest.Units
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{shelf: &shelf{}, units: &storetest.Units{}}
	rules, err := address.NewRules(nil)
	storetest.Must(t, err)
	cache := currency.NewCache(coins{})
	storetest.Must(t, cache.Reload(t.Context()))
	d.Service = &addressbook.Service{Store: d.shelf, Currencies: cache, Rules: rules, Waiting: time.Hour,
		Changes: admin.Changes{Commit: d.units, Now: func() time.Time { return now.Add(time.Microsecond) }}}
	return d
}

// add adds an entry to the book.
func (d *desk) add(t *testing.T, in addressbook.New) addressbook.Record {
	t.Helper()
	r, err := d.Add(t.Context(), who, in)
	storetest.Must(t, err)
	return r
}

// An entry is stored trimmed, audited without its name, and usable after the waiting time.
func TestAddToBook(t *testing.T) {
	d := newDesk(t)
	got := d.add(t, addressbook.New{CurrencyCode: " BTC ", NetworkCode: " BTC ", Address: " " + bitcoin + " ",
		Name: " mine "})
	want := addressbook.Record{Entry: addressbook.Entry{ID: 1, Name: "mine", Address: bitcoin, CurrencyID: 1, NetworkID: 1,
		CreatedAt: now, AddressAt: now}, CurrencyCode: "BTC", NetworkCode: "BTC", UsableFrom: now.Add(time.Hour)}
	storetest.Same(t, got, want)
	storetest.Same(t, d.units.Audit(), []string{"u1 WITHDRAWAL_ADDRESS_ADD u1 1 BTC on BTC: " + bitcoin})
	d.Waiting = 0
	want.UsableFrom = time.Time{}
	list, err := d.List(t.Context(), who)
	storetest.Must(t, err)
	storetest.Same(t, list, []addressbook.Record{want})
	if list, err := d.List(t.Context(), audit.By{UserID: "u2"}); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// The errors of Add come in the order of D-WAD-03, and every invalid field is named.
func TestRefusedAdditions(t *testing.T) {
	long := strings.Repeat("x", 33)
	for i, c := range []struct {
		in     addressbook.New
		code   fault.Code
		fields string
	}{
		{addressbook.New{CurrencyCode: "X", NetworkCode: "Y", Address: "short", Name: " "}, fault.InvalidField,
			"currencyCode networkCode address name"},
		{addressbook.New{CurrencyCode: "BTC", NetworkCode: "ETH", Address: bitcoin, Name: "a"}, fault.InvalidField,
			"networkCode"},
		{addressbook.New{CurrencyCode: "BTC", NetworkCode: "BTC", Address: "short", Name: long}, fault.InvalidField,
			"address"},
		{addressbook.New{CurrencyCode: "BTC", NetworkCode: "BTC", Address: ether, Name: long}, fault.WDNetworkAssetMismatch,
			"address"},
		{addressbook.New{CurrencyCode: "ETH", NetworkCode: "ETH", Address: ether, Name: long}, fault.CharLimitExceeded,
			"name"},
		{addressbook.New{CurrencyCode: "ETH", NetworkCode: "ETH", Address: ether, Name: "mine"}, fault.RecordAlreadyExist,
			"name"},
		{addressbook.New{CurrencyCode: "BTC", NetworkCode: "BTC", Address: bitcoin, Name: "b"}, fault.RecordAlreadyExist,
			"address"},
	} {
		d := newDesk(t)
		d.add(t, addressbook.New{CurrencyCode: "BTC", NetworkCode: "BTC", Address: bitcoin, Name: "mine"})
		_, err := d.Add(t.Context(), who, c.in)
		storetest.Wants(t, err, c.code)
		if storetest.WantsFields(t, err, c.fields); t.Failed() {
			t.Fatal(i)
		}
		if len(d.shelf.book) != 1 || len(d.units.Audit()) != 1 {
			t.Errorf("%d: %+v", i, d.shelf.book)
		}
	}
	d := newDesk(t)
	for i := range 20 {
		d.shelf.book = append(d.shelf.book, addressbook.Entry{ID: int64(i + 50), Name: fmt.Sprint(i), CurrencyID: 1,
			NetworkID: 1})
		d.shelf.book[i].Address = fmt.Sprint("address", i)
	}
	in := addressbook.New{CurrencyCode: "BTC", NetworkCode: "BTC", Address: bitcoin, Name: "mine"}
	_, err := d.Add(t.Context(), who, in)
	storetest.Wants(t, err, fault.RecordLimitReached)
	d.shelf.book = d.shelf.book[1:]
	d.add(t, in)
}

// A new address waits again; another spelling of the same address and a new name do not.
func TestChangeOfEntry(t *testing.T) {
	d := newDesk(t)
	d.add(t, addressbook.New{CurrencyCode: "ETH", NetworkCode: "ETH", Address: ether, Name: "mine"})
	later := now.Add(time.Minute)
	d.Changes.Now = func() time.Time { return later }
	const spelled, other = "0xDE0B295669A9FD93D5F28D9EC85E40F4CB697BAE", "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"
	for _, c := range []struct {
		in     addressbook.Change
		want   addressbook.Entry
		detail string
	}{
		{addressbook.Change{ID: 1, Name: new(" other ")}, addressbook.Entry{Name: "other", Address: ether, AddressAt: now},
			"name changed"},
		{addressbook.Change{ID: 1, Address: new(" " + spelled)}, addressbook.Entry{Name: "other", Address: spelled,
			AddressAt: now}, ether + " -> " + spelled},
		{addressbook.Change{ID: 1, Address: new(spelled), Name: new("other")}, addressbook.Entry{Name: "other",
			Address: spelled, AddressAt: now}, ""},
		{addressbook.Change{ID: 1, Address: new(other), Name: new("third")}, addressbook.Entry{Name: "third", Address: other,
			AddressAt: later}, spelled + " -> " + other + ", name changed"},
	} {
		d.units.Writes = nil
		got, err := d.Change(t.Context(), who, c.in)
		storetest.Must(t, err)
		c.want.ID, c.want.CurrencyID, c.want.NetworkID, c.want.CreatedAt = 1, 2, 2, now
		storetest.Same(t, got, addressbook.Record{Entry: c.want, CurrencyCode: "ETH", NetworkCode: "ETH",
			UsableFrom: c.want.AddressAt.Add(time.Hour)})
		storetest.Same(t, d.shelf.book, addressbook.Book{c.want})
		var rows []string
		if c.detail != "" {
			rows = []string{"u1 WITHDRAWAL_ADDRESS_UPDATE u1 1 " + c.detail}
		}
		storetest.Same(t, d.units.Audit(), rows)
	}
	d.add(t, addressbook.New{CurrencyCode: "BTC", NetworkCode: "BTC", Address: bitcoin, Name: "b"})
	for i, c := range []struct {
		in     addressbook.Change
		code   fault.Code
		fields string
	}{
		{addressbook.Change{ID: 1}, fault.InvalidField, "address name"},
		{addressbook.Change{ID: 9, Address: new("x"), Name: new("")}, fault.InvalidField, "address name"},
		{addressbook.Change{ID: 9, Name: new("x")}, fault.RecordNotFound, ""},
		{addressbook.Change{ID: 1, Address: new(bitcoin), Name: new(strings.Repeat("x", 33))}, fault.WDNetworkAssetMismatch,
			"address"},
		{addressbook.Change{ID: 1, Name: new(strings.Repeat("x", 33))}, fault.CharLimitExceeded, "name"},
		{addressbook.Change{ID: 1, Name: new("b")}, fault.RecordAlreadyExist, "name"},
	} {
		before := slices.Clone(d.shelf.book)
		_, err := d.Change(t.Context(), who, c.in)
		storetest.Wants(t, err, c.code)
		if c.fields != "" {
			storetest.WantsFields(t, err, c.fields)
		}
		if !slices.Equal(d.shelf.book, before) || t.Failed() {
			t.Fatalf("%d: %+v", i, d.shelf.book)
		}
	}
}

func TestRemoveFromBook(t *testing.T) {
	d := newDesk(t)
	d.add(t, addressbook.New{CurrencyCode: "BTC", NetworkCode: "BTC", Address: bitcoin, Name: "mine"})
	d.units.Writes = nil
	storetest.Wants(t, d.Remove(t.Context(), who, 2), fault.RecordNotFound)
	storetest.Wants(t, d.Remove(t.Context(), audit.By{UserID: "u2"}, 1), fault.RecordNotFound)
	storetest.Must(t, d.Remove(t.Context(), who, 1))
	storetest.Same(t, d.units.Audit(), []string{"u1 WITHDRAWAL_ADDRESS_REMOVE u1 1 " + bitcoin})
	if len(d.shelf.book) != 0 {
		t.Errorf("%+v", d.shelf.book)
	}
}

// A failed store fails every operation, and nothing is audited.
func TestBookWithoutStore(t *testing.T) {
	in := addressbook.New{CurrencyCode: "ETH", NetworkCode: "ETH", Address: ether, Name: "b"}
	for _, fail := range []string{"Book", "Hold", "Insert", "Replace", "Remove"} {
		d := newDesk(t)
		d.add(t, addressbook.New{CurrencyCode: "BTC", NetworkCode: "BTC", Address: bitcoin, Name: "mine"})
		d.units.Writes, d.shelf.fail = nil, fail
		_, list := d.List(t.Context(), who)
		_, add := d.Add(t.Context(), who, in)
		_, change := d.Change(t.Context(), who, addressbook.Change{ID: 1, Name: new("c")})
		remove := d.Remove(t.Context(), who, 1)
		for name, c := range map[string]struct {
			err   error
			fails bool
		}{"list": {list, fail == "Book"}, "add": {add, fail == "Hold" || fail == "Insert"},
			"change": {change, fail == "Hold" || fail == "Replace"},
			"remove": {remove, fail == "Hold" || fail == "Remove"}} {
			if errors.Is(c.err, errDown) != c.fails {
				t.Errorf("%s without %s: %v", name, fail, c.err)
			}
		}
	}
	d := newDesk(t)
	d.shelf.book = addressbook.Book{{ID: 1, CurrencyID: 9, NetworkID: 9}}
	if _, err := d.List(t.Context(), who); err == nil {
		t.Error("an entry of an unknown currency is listed")
	}
	if _, err := d.Change(t.Context(), who, addressbook.Change{ID: 1, Name: new("c")}); err == nil {
		t.Error("an entry of an unknown currency is changed")
	}
}
