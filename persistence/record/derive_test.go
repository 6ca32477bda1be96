package record

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/storetest"
)

type colour string

type (
	shared struct{ Label string }
	Limits struct{ Most, Least int64 }
)

// derivedRecord has a field of each sort that a row can keep.
type derivedRecord struct {
	ID        int64
	Colour    colour
	Texts     map[string]string
	Route     json.RawMessage
	At        time.Time
	CreatedAt time.Time
	Number    *int64
	Pictures  [1]string
	Seen      time.Time
	Fee       amount.Amount
	shared    // embedded: its fields are those of the record
	Limits    // embedded, and kept as a whole
}

type derivedRow struct {
	bun.BaseModel `bun:"table:derived"`

	ID      int64 `bun:",pk,autoincrement"`
	Paint   string
	Texts   JSON[map[string]string]
	Route   string
	At      int64
	Number  *int64
	Picture string
	Seen    int64         `bun:",scanonly"`
	Fee     AmountColumns `bun:"embed:fee_"`
	Limits  JSON[Limits]
	shared
	Created
}

var derived = Of(Table[derivedRow, derivedRecord]{
	Reads:  func(r derivedRow, d *derivedRecord) error { d.Pictures[0] = r.Picture; return nil },
	Writes: func(d derivedRecord, r *derivedRow) { r.Picture = d.Pictures[0] },
}, Names{"Paint": "Colour", "Picture": ""}, "Pictures")

func TestDerivedConversions(t *testing.T) {
	at, n := time.UnixMilli(1_700_000_000_123).UTC(), int64(7)
	whole := derivedRecord{ID: 3, Colour: "red", Texts: map[string]string{"tr": "x"}, Route: json.RawMessage(`{"a":1}`),
		At: at, CreatedAt: at, Number: &n, Pictures: [1]string{"p"}, Seen: at, Fee: amount.Must("-0.5"),
		shared: shared{"l"}, Limits: Limits{2, 1}}
	row := derived.Row(whole)
	want := derivedRow{Paint: "red", Texts: JSONOf(whole.Texts), Route: `{"a":1}`, At: at.UnixMilli(), Number: &n,
		Picture: "p", Fee: AmountColumns{-1, 5e17}, shared: shared{"l"}, Limits: JSONOf(whole.Limits)}
	if !reflect.DeepEqual(row, want) { // without what the database and the table set
		t.Errorf("row %+v", row)
	}
	row.ID, row.CreatedAt, row.Seen = 3, at.UnixMilli(), at.UnixMilli()
	storetest.Same(t, storetest.Value(derived.Record(row))(t), whole)
	storetest.Same(t, storetest.Value(derived.Record(derivedRow{}))(t), derivedRecord{})
	storetest.Is(t, storetest.Err(derived.Record(derivedRow{Fee: AmountColumns{Lo: -1}})), amount.ErrRange)
}

// A field that is forgotten on one side ends the program when it starts.
func TestForgottenFieldPanics(t *testing.T) {
	type kept struct{ A, B string }
	refused := func(what, want string, of func()) {
		t.Helper()
		defer func() {
			storetest.Contains(t, fmt.Sprint(recover()), want, what)
		}()
		of()
	}
	refused("a field of the record", "does not keep the field B", func() { Of(Table[struct{ A string }, kept]{}, nil) })
	refused("a field of the row", "the field C keeps nothing", func() { Of(Table[struct{ A, B, C string }, kept]{}, nil) })
	refused("another type", "the field B cannot keep a string",
		func() {
			Of(Table[struct {
				A string
				B int64
			}, kept]{}, nil)
		})
	refused("nothing", "<nil>", func() { Of(Table[struct{ A, B string }, kept]{}, nil) })
}
