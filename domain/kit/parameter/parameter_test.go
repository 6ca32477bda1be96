package parameter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

type desk struct {
	*parameter.Service
	*parameter.Cache
	t  *testing.T
	db *persistence.DB
}

var by = audit.By{UserID: "boss"}

func newDesk(t *testing.T) *desk {
	db := persistencetest.SQLite(t)
	persistencetest.Exec(t, db, "DELETE FROM parameter")
	store := kit.NewParameters(db)
	storetest.Must(t, parameter.Seed(t.Context(), store))
	d := &desk{t: t, db: db, Cache: parameter.NewCache(store)}
	d.Service = &parameter.Service{Store: store,
		Changes: admin.Changes{Commit: db, Now: time.Now, Topic: "parameter", Follow: d.Follow}}
	storetest.Must(t, d.Reload(t.Context()))
	return d
}

func (d *desk) get(code string) parameter.Parameter {
	d.t.Helper()
	all, err := d.Store.List(d.t.Context(), parameter.Query{Code: &code})
	if storetest.Must(d.t, err); len(all) != 1 {
		d.t.Fatalf("%d parameters %s", len(all), code)
	}
	return all[0]
}

func (d *desk) update(code, object string) error {
	d.t.Helper()
	_, err := d.Update(d.t.Context(), by, d.get(code).ID, json.RawMessage(object), nil)
	return err
}

// Each shape rejects objects that the service could not use.
func TestShapes(t *testing.T) {
	long := strings.Repeat("ü", 64)
	link := func(n int) string { return "https://x/{txId}" + strings.Repeat("y", n-16) }
	for name, c := range map[string]struct{ good, bad []parameter.Shape }{
		"list": {[]parameter.Shape{parameter.List{Values: []string{"a", long}}},
			[]parameter.Shape{parameter.List{}, parameter.List{Values: []string{"a", "a"}}, parameter.List{Values: []string{""}},
				parameter.List{Values: []string{" "}}, parameter.List{Values: []string{long + "x"}},
				parameter.List{Values: []string{"a\x1f"}}, parameter.List{Values: []string{"a\x7f"}}}},
		"folders": {[]parameter.Shape{parameter.Folders{FolderTypes: []string{"a", "B-_9"}}},
			[]parameter.Shape{parameter.Folders{}, parameter.Folders{FolderTypes: []string{"a", "a"}},
				parameter.Folders{FolderTypes: []string{"a", "b/c"}}}},
		"ignored": {[]parameter.Shape{parameter.Ignored{IgnoredUsers: []string{}},
			parameter.Ignored{IgnoredUsers: []string{"u"}}},
			[]parameter.Shape{parameter.Ignored{}, parameter.Ignored{IgnoredUsers: []string{"u", "u"}}}},
		"addresses": {[]parameter.Shape{parameter.Addresses{}, parameter.Addresses{"BTC": {"BTC": strings.Repeat("x", 256)}}},
			[]parameter.Shape{parameter.Addresses{"": {"BTC": "x"}}, parameter.Addresses{"BTC": {"": "x"}},
				parameter.Addresses{"BTC": {"BTC": ""}}, parameter.Addresses{"BTC": {"BTC": strings.Repeat("x", 257)}}}},
		"fees": {[]parameter.Shape{parameter.Fees{"BTC": amount.Must("0")}, parameter.Fees{"BTC": amount.Must("0.1")}},
			[]parameter.Shape{parameter.Fees{"": amount.Must("1")}, parameter.Fees{"BTC": amount.Must("-0.1")}}},
		"links": {[]parameter.Shape{parameter.Links{"A": link(512), "B": "http://x/?t={txId}"}},
			[]parameter.Shape{parameter.Links{"": link(20)}, parameter.Links{"A": link(513)}, parameter.Links{"A": "https://x/"},
				parameter.Links{"A": "ftp://x/{txId}"}, parameter.Links{"A": "https:///{txId}"},
				parameter.Links{"A": "https://x/%zz{txId}"}, parameter.Links{"A": ""}}},
		"channels": {[]parameter.Shape{parameter.Channels{}, parameter.Channels{Topics: map[string][]string{"t": {}},
			Other: []string{parameter.InApp, parameter.Push, parameter.Mail}}},
			[]parameter.Shape{parameter.Channels{Other: []string{"sms"}},
				parameter.Channels{Topics: map[string][]string{"t": {parameter.Mail, "x"}}}}},
		"reached": {[]parameter.Shape{parameter.Reached{}, parameter.Reached{LevelID: new(int64(0))},
			parameter.Reached{LevelID: new(int64(1_000_000))}},
			[]parameter.Shape{parameter.Reached{LevelID: new(int64(-1))}, parameter.Reached{LevelID: new(int64(1_000_001))}}},
		"length": {[]parameter.Shape{parameter.MinLength{}, parameter.MinLength{MinLength: 1000}},
			[]parameter.Shape{parameter.MinLength{MinLength: -1}, parameter.MinLength{MinLength: 1001}}},
	} {
		for _, s := range c.good {
			storetest.Equal(t, s.Check(), "", name, s)
		}
		for _, s := range c.bad {
			if s.Check() == "" {
				t.Errorf("%s %+v is not refused", name, s)
			}
		}
	}
}

func TestValues(t *testing.T) {
	l := parameter.Links{"A": "https://x/{txId}?{txId}"}
	for _, c := range [][3]string{{"A", "a/b", "https://x/a%2Fb?a%2Fb"}, {"A", "", ""}, {"B", "x", ""}} {
		storetest.Equal(t, l.Of(c[0], c[1]), c[2], c[0], c[1])
	}
	ch := parameter.Channels{Topics: map[string][]string{"none": {}, "one": {"push"}}, Other: []string{"mail"}}
	for topic, want := range map[string]string{"none": "[]", "one": "[push]", "x": "[mail]"} {
		storetest.Equal(t, fmt.Sprint(ch.Of(topic)), want, topic)
	}
	if list := (parameter.List{Values: []string{"a"}}); !list.Allows("a") || list.Allows("A") || list.Allows("") {
		t.Error("a list allows what is not in it")
	}
}

// Explorers are written only to a parameter that was never changed.
func TestSeedExplorers(t *testing.T) {
	links := parameter.Links(currency.Explorers)
	if wrong := links.Check(); wrong != "" || len(links) == 0 {
		t.Errorf("the seeded links: %s", wrong)
	}
	for name, c := range map[string]struct {
		changes []string
		want    string
	}{
		"new":               {nil, links.Of("BTC", "x")},
		"of an operator":    {[]string{`{"BTC":"https://own.example/{txId}"}`}, "https://own.example/x"},
		"of other networks": {[]string{`{"ETH":"https://own.example/{txId}"}`}, ""},
		"emptied":           {[]string{`{"BTC":"https://own.example/{txId}"}`, `{}`}, ""},
	} {
		d := newDesk(t)
		for _, object := range c.changes {
			storetest.Must(t, d.update("EXPLORER", object))
		}
		for range 2 {
			storetest.Must(t, parameter.SeedExplorers(t.Context(), d.Store, links))
		}
		live := parameter.NewCache(d.Store)
		storetest.Must(t, live.Reload(t.Context()))
		storetest.Equal(t, parameter.Explorer.In(live.Set()).Of("BTC", "x"), c.want, name)
	}
}

// Seed adds only the missing parameters, and a new installation works with the initial values.
func TestSeed(t *testing.T) {
	d := newDesk(t)
	before := storetest.Value(d.Store.List(t.Context(), parameter.Query{}))(t)
	if first := d.get("EXPLANATION"); len(before) != 14 || string(first.JSON) != `{"minLength":3}` || !first.Editable ||
		first.Name == "" {
		t.Errorf("%d, %+v", len(before), first)
	}
	storetest.Must(t, d.update("EXPLANATION", `{"minLength":7}`))
	persistencetest.Exec(t, d.db, "DELETE FROM parameter WHERE code = 'CDN'")
	storetest.Must(t, parameter.Seed(t.Context(), d.Store))
	if after, err := d.Store.List(t.Context(), parameter.Query{}); err != nil || len(after) != 14 ||
		parameter.Explanation.In(d.Set()).MinLength != 7 {
		t.Errorf("%d, %v, %+v", len(after), err, parameter.Explanation.In(d.Set()))
	}
	storetest.Fails(t, parameter.Seed(t.Context(), full{d.Store}), "", "no error of a parameter that cannot be added")
	empty := parameter.NewCache(d.Store)
	storetest.Equal(t, fmt.Sprint(parameter.UserType.In(empty.Set()).Values), "[bireysel kurumsal]")
}

// full is a store that rejects new parameters and lists none.
type full struct{ parameter.Store }

func (full) List(context.Context, parameter.Query) ([]parameter.Parameter, error) { return nil, nil }
func (full) Add(context.Context, parameter.Parameter) (int64, error)              { return 0, errors.New("full") }

// The audit row shows the old and the new value of each changed member, and no secret.
func TestDetail(t *testing.T) {
	d := newDesk(t)
	_, err := d.Store.Add(t.Context(), parameter.Parameter{Code: "OWN", Name: "n", Editable: true,
		JSON: json.RawMessage(`{"a":1,"b":{"apiKey":"x","c":[{"token":"y"}]},"d":2,"secret":null}`)})
	storetest.Must(t, err)
	storetest.Must(t, d.update("OWN", `{"a":1,"b":{"apiKey":"x","c":[{"token":"z"}]},"e":3,"secret":"s"}`))
	for range 2 { // the second changes nothing
		storetest.Must(t, d.update("OWN", `{"long":"`+strings.Repeat("x", 16<<10)+`"}`))
	}
	acts := persistencetest.Acts(t, d.db)
	storetest.Equal(t, acts[0], `PARAMETER_UPDATE|boss||OWN|{"b":[{"apiKey":"(hidden)","c":[{"token":"(hidden)"}]},`+
		`{"apiKey":"(hidden)","c":[{"token":"(hidden)"}]}],"d":[2,null],"e":[null,3],"secret":[null,"(hidden)"]}`)
	if !strings.Contains(acts[1], " bytes of old and new, SHA-256 ") || len(acts[1]) > 200 || len(acts) != 2 {
		t.Errorf("%.200s", acts[1])
	}
	_, err = d.Store.Add(t.Context(), parameter.Parameter{Code: "OTHER", Name: "n", Editable: true,
		JSON: json.RawMessage(`{}`)})
	storetest.Must(t, err)
	for n, whole := range map[int]bool{16<<10 - 15: true, 16<<10 - 14: false} { // {"a":[null,"xx…"]}
		storetest.Must(t, d.update("OTHER", `{"a":"`+strings.Repeat("x", n)+`"}`))
		acts := persistencetest.Acts(t, d.db)
		if last := acts[len(acts)-1]; strings.Contains(last, "SHA-256") == whole {
			t.Errorf("%d bytes: %.80s", n, last)
		}
		storetest.Must(t, d.update("OTHER", `{}`))
	}
}

// A change made by the service joins the caller's transaction.
func TestChange(t *testing.T) {
	d := newDesk(t)
	ignore := func(i parameter.Ignored) (parameter.Ignored, error) {
		i.IgnoredUsers = append(i.IgnoredUsers, "u1")
		return i, nil
	}
	storetest.Must(t, parameter.AMLControl.Change(t.Context(), d.Store, ignore))
	storetest.Equal(t, string(d.get("AMLCONTROL").JSON), `{"ignoredUsers":["u1"]}`)
	no := errors.New("no")
	err := parameter.AMLControl.Change(t.Context(), d.Store, func(i parameter.Ignored) (parameter.Ignored, error) {
		return i, no
	})
	if !errors.Is(err, no) {
		t.Error(err)
	}
	persistencetest.Exec(t, d.db, `UPDATE parameter SET json = '[]' WHERE code = 'AMLCONTROL'`)
	storetest.Fails(t, parameter.AMLControl.Change(t.Context(), d.Store, ignore), "")
	storetest.Fails(t, d.Reload(t.Context()), "", "loaded an object that has another shape")
	persistencetest.Exec(t, d.db, `DELETE FROM parameter WHERE code = 'AMLCONTROL'`)
	storetest.Wants(t, parameter.AMLControl.Change(t.Context(), d.Store, ignore), fault.RecordNotFound)
	storetest.Must(t, d.Reload(t.Context()))
	if got := parameter.AMLControl.In(d.Set()); got.IgnoredUsers == nil {
		t.Error("a parameter that is not there has no first value")
	}
}

// The users that only one of two objects ignores are named in order, whatever the case of the member.
func TestIgnoredDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":          {`{"ignoredUsers":["a","b"]}`, `{"ignoredUsers":["b","a"]}`, nil},
		"added":            {`{"ignoredUsers":[]}`, `{"ignoredUsers":["b","a"]}`, []string{"a", "b"}},
		"removed":          {`{"ignoredUsers":["b","a"]}`, `{}`, []string{"a", "b"}},
		"both":             {`{"ignoredUsers":["c","a"]}`, `{"ignoredUsers":["a","b"]}`, []string{"b", "c"}},
		"another case":     {`{"IGNOREDUSERS":["a"]}`, `{}`, []string{"a"}},
		"two members":      {`{"ignoredUsers":["a"],"IgnoredUsers":["b"]}`, `{}`, []string{"a", "b"}},
		"another shape":    {`{"ignoredUsers":7}`, `[]`, nil},
		"no object before": {``, `{"ignoredUsers":["a"]}`, []string{"a"}},
	} {
		storetest.Same(t, parameter.IgnoredDiffer(json.RawMessage(c.before), json.RawMessage(c.after)), c.want, name)
	}
}

// The service reads each parameter by one code.
func TestCodesAreDifferent(t *testing.T) {
	codes := parameter.Codes()
	for _, want := range []string{"KYC_LEVEL", "EXPLANATION"} {
		storetest.Equal(t, slices.Contains(codes, want), true, codes, "lack", want)
	}
	slices.Sort(codes)
	storetest.Equal(t, len(codes), len(slices.Compact(slices.Clone(codes))), codes)
}
