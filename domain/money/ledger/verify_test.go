package ledger_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
)

// books is a ledger in memory. Its pages have two rows.
type books struct {
	transfers []ledger.Sealed
	audited   []ledger.Seal
	debits    []ledger.Entry
	credits   []ledger.Entry
	active    []ledger.Entry
	lines     []ledger.Line
	days      []ledger.Day
	endings   []ledger.Ending
	closed    int64
	anyClosed bool
	failing   string // the method that fails
}

var errDown = errors.New("the database is down")

// rows returns the next two rows after one that is known by its key.
func rows[T any](b *books, method string, all []T, after T, key func(T) string) ([]T, error) {
	if b.failing == method {
		return nil, errDown
	}
	at := 0
	for key(after) != "" && at < len(all) && key(all[at]) != key(after) {
		at++
	}
	if key(after) != "" {
		at++
	}
	return all[min(at, len(all)):min(at+2, len(all))], nil
}

func ofEntry(e ledger.Entry) string { return strings.TrimSpace(e.Account + " " + e.ID) }

func (b *books) Snapshot(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

func (b *books) Transfers(_ context.Context, after ledger.Sealed) ([]ledger.Sealed, error) {
	return rows(b, "Transfers", b.transfers, after, func(s ledger.Sealed) string { return s.ID })
}

func (b *books) Audited(_ context.Context, after ledger.Seal) ([]ledger.Seal, error) {
	return rows(b, "Audited", b.audited, after, func(s ledger.Seal) string { return s.ID })
}

func (b *books) Debits(_ context.Context, after ledger.Entry) ([]ledger.Entry, error) {
	return rows(b, "Debits", b.debits, after, ofEntry)
}

func (b *books) Credits(_ context.Context, after ledger.Entry) ([]ledger.Entry, error) {
	return rows(b, "Credits", b.credits, after, ofEntry)
}

func (b *books) Active(_ context.Context, after ledger.Entry) ([]ledger.Entry, error) {
	return rows(b, "Active", b.active, after, ofEntry)
}

func (b *books) Lines(_ context.Context, after ledger.Line) ([]ledger.Line, error) {
	return rows(b, "Lines", b.lines, after, func(l ledger.Line) string { return l.ID })
}

func (b *books) Days(_ context.Context, after ledger.Day) ([]ledger.Day, error) {
	return rows(b, "Days", b.days, after, func(d ledger.Day) string {
		return strings.TrimSuffix(fmt.Sprint(d.Account, " ", d.Day), " 0")
	})
}

func (b *books) Endings(_ context.Context, after ledger.Ending) ([]ledger.Ending, error) {
	return rows(b, "Endings", b.endings, after, func(e ledger.Ending) string { return e.ID })
}

func (b *books) LastDay(context.Context) (int64, bool, error) {
	if b.failing == "LastDay" {
		return 0, false, errDown
	}
	return b.closed, b.anyClosed, nil
}

// firstDay is the UTC day of the first movements, in whole days since 1970.
const firstDay = 20_000

var (
	treasury = ledger.Account{Kind: ledger.Treasury, Asset: 1}
	alice    = ledger.Account{Kind: ledger.User, Owner: "alice", Asset: 1}
	bob      = ledger.Account{Kind: ledger.User, Owner: "bob", Asset: 1}
	suspense = ledger.Account{Kind: ledger.Suspense, Asset: 1}
)

// move books a transfer in the given numbers of its accounts.
func (b *books) move(id string, from, to ledger.Account, sum string, fromSeq, toSeq int64) {
	a := amount.Must(sum)
	hi, lo := a.Parts()
	c := ledger.Content{ID: id, Group: id, Kind: "test", Ref: id, Debit: from.ID(), Credit: to.ID(), Asset: from.Asset,
		Unit: 1, Hi: hi, Lo: lo}
	digest := c.Digest()
	b.transfers = append(b.transfers, ledger.Sealed{Content: c, Sum: digest[:]})
	b.audited = append(b.audited, ledger.Seal{ID: id, Digest: hex.EncodeToString(digest[:])})
	b.debits = append(b.debits, ledger.Entry{Account: from.ID(), ID: id, Seq: fromSeq, Amount: a})
	b.credits = append(b.credits, ledger.Entry{Account: to.ID(), ID: id, Seq: toSeq, Amount: a})
}

func line(a ledger.Account, posted, locked string, seq int64) ledger.Line {
	return ledger.Line{ID: a.ID(), Balance: ledger.Balance{Account: a, Posted: amount.Must(posted),
		Locked: amount.Must(locked), Seq: seq}}
}

// idOf is an id made on a day.
func idOf(day int64, n int) string { return millisID(day*24*3600*1000) + fmt.Sprintf("%016d", n) }

// millisID is the first part of an id: its time in Crockford's base 32.
func millisID(ms int64) string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	var b [10]byte
	for i := range b {
		b[len(b)-1-i], ms = digits[ms%32], ms/32
	}
	return string(b[:])
}

// sound returns books without a fault: the treasury pays alice 5 and 2 on the first day and bob 4 on the next, who
// passes 1 to alice. Alice locks 3, and 0.5 of the treasury are unexplained. The first day is closed.
func sound() *books {
	b := &books{closed: firstDay, anyClosed: true}
	b.move(idOf(firstDay, 1), treasury, alice, "5", 0, 1)
	b.move(idOf(firstDay, 2), treasury, alice, "2", 0, 2)
	b.move(idOf(firstDay+1, 1), treasury, bob, "4", 0, 1)
	b.move(idOf(firstDay+1, 2), bob, alice, "1", 2, 3)
	b.move(idOf(firstDay+1, 3), suspense, treasury, "0.5", 0, 0)
	b.active = []ledger.Entry{{Account: alice.ID(), ID: "h1", Amount: amount.Must("1")},
		{Account: alice.ID(), ID: "h2", Amount: amount.Must("2")}}
	b.endings = []ledger.Ending{{ID: "h1", Account: alice.ID(), State: ledger.Active},
		{ID: "h3", Account: alice.ID(), State: ledger.Settled, Debited: alice.ID()}}
	b.lines = []ledger.Line{line(alice, "8", "3", 3), line(bob, "3", "0", 2), line(suspense, "-0.5", "0", 1),
		line(treasury, "-10.5", "0", 4)}
	b.days = []ledger.Day{
		{Account: alice.ID(), Day: firstDay, Posted: sum("7"), In: sum("7"), Seq: 2},
		{Account: treasury.ID(), Day: firstDay, Posted: sum("-7"), Out: sum("7"), Seq: 2}}
	b.sort()
	return b
}

// sort puts the rows in the order of the database.
func (b *books) sort() {
	order := func(x, y ledger.Entry) int { return strings.Compare(ofEntry(x), ofEntry(y)) }
	slices.SortFunc(b.debits, order)
	slices.SortFunc(b.credits, order)
	slices.SortFunc(b.lines, func(x, y ledger.Line) int { return strings.Compare(x.ID, y.ID) })
	slices.SortFunc(b.days, func(x, y ledger.Day) int { return strings.Compare(x.Account, y.Account) })
	slices.SortFunc(b.transfers, func(x, y ledger.Sealed) int { return strings.Compare(x.ID, y.ID) })
	slices.SortFunc(b.audited, func(x, y ledger.Seal) int { return strings.Compare(x.ID, y.ID) })
}

func sum(text string) amount.Sum { return amount.Must(text).Sum() }

// of returns the line of an account.
func (b *books) of(a ledger.Account) *ledger.Line {
	return &b.lines[slices.IndexFunc(b.lines, func(l ledger.Line) bool { return l.ID == a.ID() })]
}

// A sound ledger verifies, and its totals count each transfer once.
func TestVerify(t *testing.T) {
	totals, err := ledger.Verify(t.Context(), sound())
	if err != nil || len(totals) != 1 {
		t.Fatalf("%v, %v", totals, err)
	}
	const want = "asset 1: 5 transfers between 4 accounts add up to 0; users have 11, of which 3 is locked; " +
		"-0.5 is unexplained"
	storetest.Equal(t, totals[0].String(), want)
	storetest.Equal(t, len(storetest.Value(ledger.Verify(t.Context(), &books{}))(t)), 0, "a new ledger")
}

// Every fault is found and named.
func TestVerifyNamesTheFault(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(*books)
	}{
		{"a changed transfer", "does not match its digest", func(b *books) { b.transfers[1].Ref = "other" }},
		{"a transfer with a new digest", "does not match the audit", func(b *books) {
			b.transfers[1].Ref = "other"
			sum := b.transfers[1].Digest()
			b.transfers[1].Sum = sum[:]
		}},
		{"a transfer without its audit row", "is not in the audit", func(b *books) { b.audited = b.audited[1:] }},
		{"the last transfer without its audit row", "is not in the audit", func(b *books) { b.audited = b.audited[:4] }},
		{"an audit row twice", "is in the audit twice", func(b *books) { b.audited[1] = b.audited[0] }},
		{"a sum beyond an amount", "day 20000 of account user/1/alice does not match its transfers", func(b *books) {
			b.credits[1].Amount, b.credits[2].Amount = amount.Most, amount.Most
		}},
		{"holds beyond an amount", "account user/1/alice locks more than the maximum amount at hold h2", func(b *books) {
			b.active[0].Amount, b.active[1].Amount = amount.Most, amount.Most
		}},
		{"a missing transfer", "is in the audit and not in the ledger", func(b *books) { b.transfers = b.transfers[1:] }},
		{"a missing last transfer", "is in the audit and not in the ledger", func(b *books) {
			b.transfers = b.transfers[:4]
		}},
		{"a hold settled by another account", "hold h3 is settled by no transfer of its account", func(b *books) {
			b.endings[1].Debited = bob.ID()
		}},
		{"a larger balance", "has 9, its transfers add up to 8", func(b *books) {
			b.of(alice).Posted = amount.Must("9")
		}},
		{"a lost count", "counts 2 transfers and has 3", func(b *books) { b.of(alice).Seq = 2 }},
		{"a number twice", "does not number its transfers from 1 to 3", func(b *books) { b.credits[2].Seq = 1 }},
		{"numbers with the right sum", "does not number its transfers from 1 to 3", func(b *books) {
			for i := range b.credits {
				if b.credits[i].Account == alice.ID() {
					b.credits[i].Seq = 2
				}
			}
		}},
		{"numbers that begin at 0", "does not number its transfers from 1 to 2", func(b *books) {
			b.of(bob).Seq = 2
			for _, list := range [][]ledger.Entry{b.debits, b.credits} {
				for i := range list {
					if list[i].Account == bob.ID() {
						list[i].Seq--
					}
				}
			}
		}},
		{"another name", "is called", func(b *books) { b.of(bob).Owner = "eve" }},
		{"a lost hold", "locks 3, its holds add up to 1", func(b *books) { b.active = b.active[:1] }},
		{"a hold without an account", "which has no balance", func(b *books) { b.active[0].Account = "a" }},
		{"a hold after the last account", "which has no balance", func(b *books) {
			b.active = append(b.active, ledger.Entry{Account: "z", ID: "h9"})
		}},
		{"a debit of no account", "which has no balance", func(b *books) { b.debits[0].Account = "a" }},
		{"a credit after the last account", "which has no balance", func(b *books) {
			b.credits = append(b.credits, ledger.Entry{Account: "z", ID: idOf(firstDay+1, 9)})
		}},
		{"a missing day", "is not closed according to its transfers", func(b *books) { b.days = b.days[1:] }},
		{"a day that is not closed", "has no transfers", func(b *books) {
			b.days = append([]ledger.Day{{Account: "a", Day: firstDay}}, b.days...)
		}},
		{"a day with another balance", "does not match its transfers", func(b *books) {
			b.days[0].Posted = sum("6")
		}},
		{"a day with another income", "does not match its transfers", func(b *books) {
			b.days[0].In = sum("6")
		}},
		{"a day with another expense", "does not match its transfers", func(b *books) {
			b.days[1].Out = sum("6")
		}},
		{"a day with another count", "does not match its transfers", func(b *books) { b.days[0].Seq = 1 }},
		{"money from nowhere", "its balances add up to 1 instead of 0", func(b *books) {
			b.credits[3].Amount = amount.Must("2")
			b.of(alice).Posted = amount.Must("9")
		}},
	} {
		b := sound()
		c.change(b)
		_, err := ledger.Verify(t.Context(), b)
		if !errors.Is(err, ledger.ErrBroken) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// The totals are in the order of the assets. The accounts of one asset may come to more than an amount.
func TestVerifyAssets(t *testing.T) {
	b := &books{}
	for asset := int64(5); asset > 0; asset-- {
		from, to := treasury, alice
		from.Asset, to.Asset = asset, asset
		b.move(idOf(firstDay, int(asset)), from, to, "1", 0, 1)
		b.lines = append(b.lines, line(from, "-1", "0", 1), line(to, "1", "0", 1))
	}
	b.sort()
	totals, err := ledger.Verify(t.Context(), b)
	for i, sum := range totals {
		if sum.Asset != int64(i+1) || sum.Transfers != 1 || sum.Accounts != 2 {
			t.Errorf("%d: %+v", i, sum)
		}
	}
	storetest.Must(t, err)
	storetest.Equal(t, len(totals), 5, totals)
	const most = "999999999999999999"
	b = &books{}
	b.move(idOf(firstDay, 1), treasury, alice, most, 0, 1)
	b.move(idOf(firstDay, 2), suspense, bob, "1", 0, 1)
	b.lines = []ledger.Line{line(treasury, "-"+most, "0", 1), line(alice, most, "0", 1),
		line(suspense, "-1", "0", 1), line(bob, "1", "0", 1)}
	b.sort()
	totals, err = ledger.Verify(t.Context(), b)
	if err != nil || len(totals) != 1 || totals[0].Owned.String() != "1000000000000000000" {
		t.Errorf("%+v, %v", totals, err)
	}
}

// A ledger that cannot be read is not reported as broken, nor as sound.
func TestVerifyCannotRead(t *testing.T) {
	for _, method := range []string{"Transfers", "Audited", "Debits", "Credits", "Lines", "Active", "Days", "Endings",
		"LastDay"} {
		b := sound()
		b.failing = method
		if totals, err := ledger.Verify(t.Context(), b); !errors.Is(err, errDown) || errors.Is(err, ledger.ErrBroken) ||
			totals != nil {
			t.Errorf("%s: %v, %v", method, totals, err)
		}
	}
}
