package admin_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"castellan/domain/factor/mfa"
	"castellan/domain/gate/gateway"
	"castellan/domain/guard/firewall"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/money/currency"
	"castellan/domain/money/level"
	"castellan/domain/office/contract"
	"castellan/domain/people/dropdown"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
)

// leftOut are the fields that no audit row describes, by their name in every record: the target of the row, secrets,
// and fields that no administrator sets.
var leftOut = regexp.MustCompile("^(ID|Hash|" +
	"OldHash|OldUntil|CreatedAt|RotatedAt|UpdatedAt|PublishedAt|TypeCode|Stamp)$")

// own are further ones of a record.
var own = map[any]string{reflect.TypeFor[servicekey.Key](): "Name", reflect.TypeFor[mfa.Method](): "Code",
	reflect.TypeFor[mfa.Action](): "Code", reflect.TypeFor[firewall.Rule](): "Label",
	reflect.TypeFor[contract.Detail](): "Policy"}

// one are values of types that are not made of exported fields.
var one = map[reflect.Type]any{reflect.TypeFor[amount.Amount](): amount.Must("1.5"),
	reflect.TypeFor[json.RawMessage](): json.RawMessage(`1`), reflect.TypeFor[mfa.Text](): mfa.Text{"en": "x"},
	reflect.TypeFor[netip.Prefix](): netip.MustParsePrefix("192.0.2.0/24")}

// pairs returns values of a type, two by two, that differ in one place. Of a list it is the last of 200 elements.
func pairs(t reflect.Type) (all [][2]reflect.Value) {
	zero := reflect.Zero(t)
	embed := func(each [][2]reflect.Value, in func(reflect.Value) reflect.Value) {
		for _, p := range each {
			all = append(all, [2]reflect.Value{in(p[0]), in(p[1])})
		}
	}
	if v, is := one[t]; is {
		return append(all, [2]reflect.Value{zero, reflect.ValueOf(v)})
	}
	switch next := reflect.New(t).Elem(); t.Kind() {
	case reflect.String:
		next.SetString("x")
		return append(all, [2]reflect.Value{zero, next})
	case reflect.Bool:
		next.SetBool(true)
		return append(all, [2]reflect.Value{zero, next})
	case reflect.Int, reflect.Int64:
		next.SetInt(1)
		return append(all, [2]reflect.Value{zero, next})
	case reflect.Pointer:
		all = append(all, [2]reflect.Value{zero, reflect.New(t.Elem())})
		embed(pairs(t.Elem()), func(v reflect.Value) reflect.Value {
			p := reflect.New(t.Elem())
			p.Elem().Set(v)
			return p
		})
	case reflect.Slice:
		embed(pairs(t.Elem()), func(v reflect.Value) reflect.Value {
			list := reflect.MakeSlice(t, 200, 200)
			list.Index(199).Set(v)
			return list
		})
	case reflect.Struct:
		for f := range t.Fields() {
			if leftOut.MatchString(f.Name) || own[t] == f.Name {
				continue
			}
			embed(pairs(f.Type), func(v reflect.Value) reflect.Value {
				s := reflect.New(t).Elem()
				s.FieldByIndex(f.Index).Set(v)
				return s
			})
		}
	}
	return all
}

func described[T any](t *testing.T, leaves int) {
	t.Helper()
	all := pairs(reflect.TypeFor[T]())
	if len(all) != leaves {
		t.Errorf("%T has %d fields to describe, want %d", *new(T), len(all), leaves)
	}
	for _, p := range all {
		before, after := p[0].Interface().(T), p[1].Interface().(T)
		if admin.Difference(before, after) == admin.Unchanged || admin.Values(before) == admin.Values(after) {
			t.Errorf("the audit describes these alike: %.300v and %.300v", before, after)
		}
	}
}

// Every field that an administrator sets is in the audit, as deep as it is, and in lists up to the last element.
func TestEveryFieldIsDescribed(t *testing.T) {
	described[gateway.Route](t, 11)
	described[firewall.Rule](t, 14)
	described[mfa.Method](t, 2)
	described[mfa.Action](t, 3)
	described[mfa.Policy](t, 17)
	described[servicekey.Key](t, 4)
	described[resource.Type](t, 5)
	described[resource.Resource](t, 8)
	described[currency.Currency](t, 13)
	described[currency.Network](t, 4)
	described[currency.Pair](t, 14)
	described[level.Level](t, 12)
	described[dropdown.Option](t, 8)
	described[contract.Contract](t, 6)
	described[contract.Detail](t, 4)
}

// byHand are the updates that describe their change with texts of their own.
var byHand = map[string]string{
	"PARAMETER_UPDATE":          "the members of its object that differ, without secrets",
	"WITHDRAWAL_ADDRESS_UPDATE": "of its two fields the address; the name is a text of the user",
	"BLOCKAGE_UPDATE":           "its status; the comment is a text about a user",
	"DOCUMENT_UPDATE":           "status and type; of the other fields the names",
	"KYC_UPDATE":                "only the decision changes",
	"CONTRACT_DETAIL_UPDATE":    "by Service.apply, with admin.Difference",
}

var update = regexp.MustCompile(`"([A-Z_]+_UPDATE)"`)

// Each update of the domain describes its change by its fields.
func TestUpdatesDescribeTheirFields(t *testing.T) {
	found := 0
	err := filepath.WalkDir("../../../domain", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasSuffix(path, "rehearse.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range update.FindAllSubmatchIndex(text, -1) {
			found++
			name := string(text[m[2]:m[3]])
			rest, _, _ := strings.Cut(string(text[m[3]:]), "\n}\n")
			if !strings.Contains(rest, "admin.Difference(") && !strings.Contains(rest, "admin.Differ(") &&
				byHand[name] == "" && !strings.Contains(string(text), `action == "`+name) {
				t.Errorf("%s: %s describes its change neither by admin.Difference nor for a written reason", path, name)
			}
		}
		return err
	})
	if err != nil || found < 18 {
		t.Fatal(found, err)
	}
}
