package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/mfa"
	"castellan/domain/gate/gateway"
	"castellan/domain/guard/firewall"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/domain/money/level"
	"castellan/domain/office/contract"
	"castellan/domain/people/dropdown"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
)

var (
	now  = time.UnixMilli(1_700_000_000_000)
	by   = audit.By{UserID: "u1", IP: "192.0.2.1", RequestID: "r1"}
	errs = errors.New("no")
)

type extra struct{ commit.Unflushed }

// steps is a Committer that records the order of the steps.
type steps struct {
	seen   []string
	writes []commit.Write
	fail   error // of the commit
}

func (s *steps) Commit(_ context.Context, ws ...commit.Write) error {
	s.seen, s.writes = append(s.seen, "write"), ws
	return s.fail
}

func (s *steps) InTx(ctx context.Context, fn func(context.Context) error) error {
	s.seen = append(s.seen, "begin")
	err := fn(ctx)
	if err == nil {
		s.seen = append(s.seen, "commit")
	}
	return err
}

func (s *steps) step(name string, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		s.seen = append(s.seen, name)
		return errors.Join(err, ctx.Err())
	}
}

// follow is the step that applies the change of t1.
func (s *steps) follow(t *testing.T, err error) func(context.Context, ...string) error {
	return func(ctx context.Context, keys ...string) error {
		if len(keys) != 1 || keys[0] != "t1" {
			t.Errorf("told to follow %v", keys)
		}
		return s.step("follow", err)(ctx)
	}
}

func TestDo(t *testing.T) {
	done := admin.Done{Target: "t1", Detail: "d", UserID: "u2", Writes: []commit.Write{extra{}}}
	row := audit.Record{At: now, ActorID: "u1", UserID: "u2", Action: "A", Target: "t1", Outcome: audit.Success,
		IP: "192.0.2.1", RequestID: "r1", Detail: "d"}
	for name, c := range map[string]struct {
		done                    admin.Done
		lock, do, write, follow error
		seen                    []string
	}{
		"done":              {done: done, seen: []string{"begin", "lock", "do", "write", "commit", "follow"}},
		"nothing to change": {seen: []string{"begin", "lock", "do", "commit"}},
		"lock refused":      {done: done, lock: errs, seen: []string{"begin", "lock"}},
		"change refused":    {done: done, do: errs, seen: []string{"begin", "lock", "do"}},
		"row not written":   {done: done, write: errs, seen: []string{"begin", "lock", "do", "write"}},
		"follow not possible": {done: done, follow: errs,
			seen: []string{"begin", "lock", "do", "write", "commit", "follow"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &steps{fail: c.write}
			changes := admin.Changes{Commit: s, Now: func() time.Time { return now }, Topic: change.MFA,
				Lock: s.step("lock", c.lock), Follow: s.follow(t, c.follow)}
			err := changes.Do(t.Context(), by, "A", func(ctx context.Context) (admin.Done, error) {
				return c.done, s.step("do", c.do)(ctx)
			})
			storetest.Equal(t, err == nil, errors.Join(c.lock, c.do, c.write) == nil, err)
			storetest.Same(t, s.seen, c.seen)
			want := []commit.Write{extra{}, row, change.Note{Topic: change.MFA, Key: "t1"}}
			if s.writes != nil && !reflect.DeepEqual(s.writes, want) {
				t.Errorf("writes %+v, want %+v", s.writes, want)
			}
		})
	}
}

// Records that no node caches need no note. A caller that has disconnected does not stop the node from reading the
// committed data.
func TestDoWithoutTopicAndWithoutCaller(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	s := &steps{}
	changes := admin.Changes{Commit: s, Now: func() time.Time { return now }, Follow: s.follow(t, nil)}
	err := changes.Do(gone, by, "A", func(context.Context) (admin.Done, error) {
		leave()
		return admin.Done{Target: "t1"}, nil
	})
	storetest.Must(t, err)
	storetest.Equal(t, len(s.writes), 1, s.writes)
	// The key of the note may differ from the target of the row.
	changes.Topic, changes.Follow = change.Roles, nil
	err = changes.Do(t.Context(), by, "A", func(context.Context) (admin.Done, error) {
		return admin.Done{Target: "t1", Key: "k1"}, nil
	})
	if note := (change.Note{Topic: change.Roles, Key: "k1"}); err != nil || s.writes[len(s.writes)-1] != note {
		t.Errorf("error %v, writes %+v", err, s.writes)
	}
}

func TestDiffer(t *testing.T) {
	type record struct {
		Name  string
		Tags  []string
		Limit *int
		quiet int
	}
	before := record{"secret", []string{"a"}, new(1), 1}
	for _, c := range []struct {
		after record
		want  string
	}{
		{record{"secret", []string{"a"}, new(1), 2}, ""},
		{record{"other", []string{"a", "b"}, new(1), 1}, "Name Tags"},
		{record{"secret", []string{"a"}, nil, 1}, "Limit"},
	} {
		storetest.Equal(t, admin.Differ(before, c.after), c.want, c.after)
	}
}

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
	storetest.Equal(t, len(all), leaves, *new(T))
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
	"ASSETS_UPDATE":             "by edited, with admin.Difference",
	"DEPLOY_REQUEST_UPDATE":     "by change, with admin.Differ",
	"VPN_REQUEST_UPDATE":        "by change, with admin.Differ",
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

type limits struct {
	Most *int64 `json:"mostOf"`
}

type record struct {
	ID     int64 `audit:"-"`
	HostID string
	URL    string
	On     bool
	List   []string
	limits
	Limits limits
	Hash   []byte `audit:"-"`
}

// A record is described by its fields that are set, and a change by those that differ. A cut value differs by its
// digest, and a list by its elements, however long it is.
func TestDescriptions(t *testing.T) {
	hundred := make([]string, 100)
	for i := range hundred {
		hundred[i] = fmt.Sprintf("192.0.2.%d", i)
	}
	long := strings.Repeat("ü", 300)
	full := record{ID: 1, HostID: "a<b", On: true, List: []string{"x", "y", "x"}, Limits: limits{new(int64(7))},
		Hash: []byte("secret")}
	for _, c := range []struct {
		edit func(*record)
		want string
	}{
		{func(*record) {}, "unchanged"},
		{func(r *record) { r.ID, r.Hash = 2, nil }, "unchanged"},
		{func(r *record) { r.HostID, r.URL = "c", "u" }, `hostId "a<b" -> "c", url "" -> "u"`},
		{func(r *record) { r.On = false }, "on true -> false"},
		{func(r *record) { r.List = []string{"z", "x"} }, `list -["y","x"] +["z"]`},
		{func(r *record) { r.List = []string{"x", "x", "y"} }, `list ["x","y","x"] -> ["x","x","y"]`},
		{func(r *record) { r.List = append(hundred, "y", "x", "x") }, `list +["192.0.2.0","192.0.2.1",`},
		{func(r *record) { r.Limits.Most = nil }, `limits {"mostOf":7} -> {"mostOf":null}`},
		{func(r *record) { r.URL = "a\u202eb" }, `url "" -> "a[U+202E]b"`},
	} {
		next := full
		c.edit(&next)
		if got := admin.Difference(full, next); got != c.want && (len(c.want) < 30 || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s; want %s", got, c.want)
		}
	}
	storetest.Equal(t, admin.Values(full), `hostId "a<b", on true, list ["x","y","x"], limits {"mostOf":7}`)
	one, two := full, full
	one.URL, two.URL = long+"1", long+"2"
	got := admin.Difference(one, two)
	if before, after, _ := strings.Cut(got, " -> "); strings.TrimPrefix(before, "url ") == after || len(got) > 1400 ||
		!strings.Contains(got, "… (603 bytes, SHA-256 ") {
		t.Errorf("cut ends are not told apart: %s", got)
	}
}
