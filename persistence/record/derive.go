package record

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"castellan/domain/kit/amount"
	"castellan/persistence/engine"
)

// Names says which field of a record a field of its row keeps, where their names differ. "" is for a field of the row
// that keeps nothing by itself.
type Names map[string]string

// Of derives the conversions of a table from the names of the fields: a field is one line in the record and one in the
// row. Equal names need types that are equal, or of one kind such as string; an instant is kept in milliseconds, an
// amount in its columns, and any type as JSON. odd are the fields of the record that Reads and Writes convert, or that
// the table does not keep.
//
// It panics, when the program starts, if a field of the record is not kept, or a field of the row keeps nothing.
func Of[R, T any](t Table[R, T], names Names, odd ...string) Table[R, T] {
	conversionsOf(&t.Record, &t.Row, t.Reads, t.Writes, names, odd)
	return t
}

// conversionsOf sets the conversions of a table. It is not generic: the program has one copy of it for all tables.
func conversionsOf(toRecord, toRow, reads, writes any, names Names, odd []string) {
	addReads, addWrites := reflect.ValueOf(reads), reflect.ValueOf(writes)
	row, record := addReads.Type().In(0), addReads.Type().In(1).Elem()
	all := derive(row, record, names, odd)
	set := func(to any, f func(in reflect.Value) []reflect.Value) {
		v := reflect.ValueOf(to).Elem()
		v.Set(reflect.MakeFunc(v.Type(), func(args []reflect.Value) []reflect.Value { return f(args[0]) }))
	}
	set(toRecord, func(in reflect.Value) []reflect.Value {
		out := reflect.New(record)
		err := all.read(in, out.Elem())
		if err == nil && !addReads.IsNil() {
			err, _ = addReads.Call([]reflect.Value{in, out})[0].Interface().(error)
		}
		return []reflect.Value{out.Elem(), reflect.ValueOf(&err).Elem()}
	})
	set(toRow, func(in reflect.Value) []reflect.Value {
		out := reflect.New(row)
		all.write(in, out.Elem())
		if !addWrites.IsNil() {
			addWrites.Call([]reflect.Value{in, out})
		}
		return []reflect.Value{out.Elem()}
	})
}

// pairs are the conversions of a row and its record.
type pairs []pair

func (all pairs) read(row, record reflect.Value) error {
	for _, p := range all {
		if err := p.read(row.FieldByIndex(p.row), record.FieldByIndex(p.record)); err != nil {
			return err
		}
	}
	return nil
}

func (all pairs) write(record, row reflect.Value) {
	for _, p := range all {
		if p.write != nil {
			p.write(record.FieldByIndex(p.record), row.FieldByIndex(p.row))
		}
	}
}

// pair is a field of a row with the field of the record that it keeps.
type pair struct {
	row, record []int
	read        func(from, to reflect.Value) error
	write       func(from, to reflect.Value) // nil for a field that the database or the table sets
}

var stamps = []reflect.Type{reflect.TypeFor[Created](), reflect.TypeFor[Stamps]()}

func derive(row, record reflect.Type, names Names, odd []string) (all pairs) {
	stamped := map[string]bool{}
	for i := range row.NumField() {
		if f := row.Field(i); f.Anonymous && slices.Contains(stamps, f.Type) {
			for _, s := range reflect.VisibleFields(f.Type) {
				stamped[s.Name] = true
			}
		}
	}
	var kept [][]int // a struct that the record embeds may be kept as a whole
	for _, f := range fieldsOf(row) {
		name, named := names[f.Name]
		if !named {
			name = f.Name
		}
		to, has := record.FieldByName(name)
		made := stamped[f.Name] || f.Name == "ID" && strings.Contains(f.Tag.Get("bun"), "autoincrement")
		switch {
		case name == "" || !has && made:
			continue
		case !has:
			panic(fmt.Sprintf("%v: the field %s keeps nothing of a %v", row, f.Name, record))
		}
		p := pair{row: f.Index, record: to.Index}
		if p.read, p.write = conversions(f.Type, to.Type); p.read == nil {
			panic(fmt.Sprintf("%v: the field %s cannot keep a %v", row, f.Name, to.Type))
		}
		if made || strings.Contains(f.Tag.Get("bun"), "scanonly") {
			p.write = nil
		}
		kept = append(kept, to.Index)
		all = append(all, p)
	}
	for _, f := range fieldsOf(record) {
		within := func(whole []int) bool { return len(whole) <= len(f.Index) && slices.Equal(whole, f.Index[:len(whole)]) }
		if !slices.ContainsFunc(kept, within) && !slices.Contains(odd, f.Name) {
			panic(fmt.Sprintf("%v does not keep the field %s of a %v", row, f.Name, record))
		}
	}
	return all
}

// fieldsOf returns the fields of a struct and of those that it embeds.
func fieldsOf(t reflect.Type) (all []reflect.StructField) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous {
			all = append(all, f)
		}
	}
	return all
}

var (
	instant = reflect.TypeFor[time.Time]()
	rawJSON = reflect.TypeFor[json.RawMessage]()
	columns = reflect.TypeFor[AmountColumns]()
	number  = reflect.TypeFor[amount.Amount]()
	plain   = []reflect.Kind{reflect.String, reflect.Bool, reflect.Int, reflect.Int16, reflect.Int64, reflect.Uint8}
)

// conversions returns how a field of a row is read into a field of a record, and written from it; nil for types that
// have nothing in common.
func conversions(row, record reflect.Type) (read func(from, to reflect.Value) error,
	write func(from, to reflect.Value)) {
	always := func(read func(from, to reflect.Value)) func(from, to reflect.Value) error {
		return func(from, to reflect.Value) error { read(from, to); return nil }
	}
	set := func(from, to reflect.Value) { to.Set(from) }
	switch {
	case row == record:
		return always(set), set
	case row == columns && record == number:
		return func(from, to reflect.Value) error {
				a, err := from.Interface().(AmountColumns).Amount()
				to.Set(reflect.ValueOf(a))
				return err
			},
			func(from, to reflect.Value) { to.Set(reflect.ValueOf(ColumnsOf(from.Interface().(amount.Amount)))) }
	case row.Kind() == reflect.Int64 && record == instant:
		return always(func(from, to reflect.Value) { to.Set(reflect.ValueOf(engine.Time(from.Int()))) }),
			func(from, to reflect.Value) { to.SetInt(engine.Millis(from.Interface().(time.Time))) }
	case row.Kind() == reflect.String && record == rawJSON:
		return always(func(from, to reflect.Value) { to.SetBytes(AnyJSON(from.String())) }),
			func(from, to reflect.Value) { to.SetString(string(from.Bytes())) }
	case row.Kind() == reflect.Struct && row.NumField() == 1 && row.Field(0).Type == record: // JSON
		return always(func(from, to reflect.Value) { to.Set(from.Field(0)) }),
			func(from, to reflect.Value) { to.Field(0).Set(from) }
	case row.Kind() == record.Kind() && slices.Contains(plain, row.Kind()):
		return always(func(from, to reflect.Value) { to.Set(from.Convert(record)) }),
			func(from, to reflect.Value) { to.Set(from.Convert(row)) }
	}
	return nil, nil
}
