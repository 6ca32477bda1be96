package persistencetest

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"castellan/domain/factor/passkey"
	"castellan/domain/kit/amount"
	"castellan/domain/money/policy"
	"castellan/domain/proof/device"
)

// Whole returns a record whose exported fields, at any depth, all have a value. Texts, numbers and times differ from
// each other, booleans are true, and a list or a map has one element. The edits then set fields of a limited form, such
// as a status. A store that returns the record unchanged forgets none of its fields.
func Whole[T any](t testing.TB, edits ...func(*T)) T {
	t.Helper()
	var record T
	n := 0
	fill(t, reflect.ValueOf(&record).Elem(), reflect.TypeFor[T]().Name(), &n)
	for _, edit := range edits {
		edit(&record)
	}
	return record
}

// values make the nth value of a type that has no exported fields, or limits its content.
var values = map[reflect.Type]func(n int) any{
	timeType:                           func(n int) any { return time.UnixMilli(1_700_000_000_000 + int64(n)).UTC() },
	reflect.TypeFor[time.Duration]():   func(n int) any { return time.Duration(n) * time.Minute },
	reflect.TypeFor[policy.Span]():     func(n int) any { return policy.Span(n) * policy.Span(time.Minute) },
	reflect.TypeFor[amount.Amount]():   func(n int) any { return amount.Must(fmt.Sprintf("%d.5", n)) },
	reflect.TypeFor[json.RawMessage](): func(n int) any { return json.RawMessage(fmt.Sprintf(`{"n":[%d.50]}`, n)) },
	reflect.TypeFor[netip.Addr]():      func(n int) any { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}) },
	reflect.TypeFor[netip.Prefix]():    func(n int) any { return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n)}), 8) },
	reflect.TypeFor[device.Key]():      func(int) any { return key(device.ParseKey) },
	reflect.TypeFor[passkey.Key]():     func(int) any { return key(passkey.ParseKey) },
}

// key reads one public key, the base point of P-256.
func key[K any](parse func(jwk []byte) (K, error)) K {
	k, err := parse([]byte(`{"crv":"P-256","kty":"EC","x":"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",` +
		`"y":"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"}`))
	if err != nil {
		panic(err)
	}
	return k
}

// fill sets v to a value that n distinguishes from those before it.
func fill(t testing.TB, v reflect.Value, name string, n *int) {
	t.Helper()
	*n++
	if value, known := values[v.Type()]; known {
		v.Set(reflect.ValueOf(value(*n)))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(fmt.Sprintf(`%s ?'"ğ %d`, name, *n))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Interface:
		v.Set(reflect.ValueOf(fmt.Sprint(name, *n)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), name, n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), name, n)
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), name, n)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, name, n)
		fill(t, value, name, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		filled := false
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(t, v.Field(i), f.Name, n)
				filled = true
			}
		}
		if !filled {
			t.Fatalf("%s: no value for a %s", name, v.Type())
		}
	default:
		t.Fatalf("%s: no value for a %s", name, v.Type())
	}
}
