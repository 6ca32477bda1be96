package persistencetest

import (
	"context"
	"reflect"
	"testing"
	"time"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
	timeType    = reflect.TypeFor[time.Time]()
)

// Down checks that every method of the stores that takes a context and returns an error does return one if its context
// has ended before. A method that is named, such as "Rates.Last", needs no database for such arguments.
func Down(t *testing.T, without []string, stores ...any) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	left := map[string]bool{}
	for _, name := range without {
		left[name] = true
	}
	for _, store := range stores {
		v := reflect.ValueOf(store)
		for i := range v.NumMethod() {
			m, name := v.Method(i), v.Type().Name()+"."+v.Type().Method(i).Name
			f := m.Type()
			if f.NumIn() == 0 || f.In(0) != contextType || f.NumOut() == 0 || f.Out(f.NumOut()-1) != errorType {
				continue
			}
			args := []reflect.Value{reflect.ValueOf(ctx)}
			for j := 1; j < f.NumIn(); j++ {
				args = append(args, argument(t, name, f.In(j)))
			}
			call := m.Call
			if f.IsVariadic() {
				call = m.CallSlice
			}
			out := call(args)
			if failed := !out[len(out)-1].IsNil(); failed == left[name] {
				t.Errorf("%s without a database: %v", name, out[len(out)-1])
			}
		}
	}
}

// argument returns a value that asks for something: a list has one element.
func argument(t *testing.T, name string, of reflect.Type) reflect.Value {
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Slice:
		v.Set(reflect.Append(v, argument(t, name, of.Elem())))
	case reflect.Struct:
		if of == timeType {
			v.Set(reflect.ValueOf(time.UnixMilli(1_700_000_000_000)))
			break
		}
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				v.Field(i).Set(argument(t, name, of.Field(i).Type))
			}
		}
	case reflect.Func:
		v.Set(reflect.MakeFunc(of, func([]reflect.Value) (out []reflect.Value) {
			t.Errorf("%s got an answer without a database", name)
			for i := range of.NumOut() {
				out = append(out, reflect.Zero(of.Out(i)))
			}
			return out
		}))
	}
	return v
}
