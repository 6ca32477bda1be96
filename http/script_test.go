package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"castellan/cmd/app"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
	httpapi "castellan/http"
	"castellan/http/rest"
	"castellan/internal/blackbox"
	"castellan/persistence/money"
)

// script is every endpoint in the order of the examples, section by section. Each follows
// those whose answers it names, and reads follow writes. Deletes come last, in reverse order
// of creation.
func script() (all []rest.Endpoint) {
	sections, bySection := []string{}, map[string][]rest.Endpoint{}
	for _, e := range httpapi.Endpoints() {
		if bySection[e.Section] == nil {
			sections = append(sections, e.Section)
		}
		bySection[e.Section] = append(bySection[e.Section], e)
	}
	at := map[string]int{} // the place of an operation in all, from 1
	for _, name := range sections {
		var ends []rest.Endpoint
		var put func(e rest.Endpoint)
		put = func(e rest.Endpoint) {
			if at[e.ID] > 0 {
				return
			}
			at[e.ID] = 1 // so that two that name each other end
			for _, other := range bySection[name] {
				if slices.Contains(names(e), other.ID) {
					put(other)
				}
			}
			all = append(all, e)
			at[e.ID] = len(all)
		}
		for _, reads := range []bool{false, true} { // a list shows what was added
			for _, e := range bySection[name] {
				switch last := e.Example().Last; {
				case (e.Method == "GET") != reads:
				case last:
					ends = append([]rest.Endpoint{e}, ends...)
				default:
					put(e)
				}
			}
		}
		made := func(e rest.Endpoint) (last int) {
			for _, name := range names(e) {
				last = max(last, at[name])
			}
			return last
		}
		slices.SortStableFunc(ends, func(a, b rest.Endpoint) int { return made(b) - made(a) })
		all = append(all, ends...)
	}
	return all
}

// names are the operations whose answers an example names.
func names(e rest.Endpoint) (all []string) {
	for _, found := range placeholder.FindAllStringSubmatch(e.Example().Request, -1) {
		name, _, _ := strings.Cut(found[1], ".")
		all = append(all, name)
	}
	return all
}

var placeholder = regexp.MustCompile(`\$\{([^}]+)\}`)

// filled is a request with the values of earlier answers.
func (l *live) filled(e rest.Endpoint, request string) string {
	return placeholder.ReplaceAllStringFunc(request, func(found string) string {
		v := l.value(found[2 : len(found)-1])
		if v == nil {
			l.t.Errorf("the example of %s: nothing before it answered %s", e.Key(), found)
		}
		switch v.(type) {
		case map[string]any, []any:
			text, _ := json.Marshal(v)
			return string(text)
		}
		return fmt.Sprint(v)
	})
}

func (l *live) value(path string) any {
	name, _, _ := strings.Cut(path, ".")
	if rest, ok := strings.CutPrefix(path, name+".result."); ok {
		name, path = name+".result", rest
	} else {
		path = strings.TrimPrefix(strings.TrimPrefix(path, name), ".")
	}
	v := l.said[name]
	for step := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[step]
		case []any:
			v = element(x, step)
		default:
			return nil
		}
	}
	if raw, ok := v.(json.RawMessage); ok {
		return string(raw)
	}
	return v
}

// element is the one of a list that a step names: by its number, or by a field, as
// in code=auditor.
func element(list []any, step string) any {
	if name, want, ok := strings.Cut(step, "="); ok {
		for _, e := range list {
			if o, ok := e.(map[string]any); ok && fmt.Sprint(o[name]) == want {
				return e
			}
		}
		return nil
	}
	if i, err := strconv.Atoi(step); err == nil && i < len(list) {
		return list[i]
	}
	return nil
}

// target is the path and the body of a request. Fields that the path names are
// taken out of it.
func target(e rest.Endpoint, request string) (path, body string) {
	path = e.Path
	if names := rest.PathParams(path); len(names) > 0 {
		query, err := url.ParseQuery(request)
		fields := map[string]json.RawMessage{}
		if e.Method != "GET" && json.Unmarshal([]byte(request), &fields) != nil || err != nil {
			return path, request
		}
		for _, name := range names {
			value := query.Get(name)
			if e.Method != "GET" {
				value = strings.Trim(string(fields[name]), `"`)
			}
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
			query.Del(name)
			delete(fields, name)
		}
		if e.Method == "GET" {
			request = query.Encode()
		} else if len(fields) == 0 {
			request = ""
		}
	}
	if e.Method == "GET" {
		if request != "" {
			path += "?" + request
		}
		return path, ""
	}
	return path, request
}

// fund gives the user what no endpoint makes: deposits that wait for the treasury, and
// withdrawals that wait for the hot wallet. Of each the examples move one.
func (l *live) fund() {
	l.t.Helper()
	ctx := context.Background()
	v := storetest.Value(app.Open(ctx, l.cfg))(l.t)
	defer v.Close()
	catalog := storetest.Value(currency.Load(ctx, money.NewCurrencies(v.DB)))(l.t)
	pair, _ := catalog.Info(new("BTC"), new("BTC"))
	books := &ledger.Ledger{Store: money.NewLedger(v.DB), Commit: v.DB, Now: time.Now,
		Decimals: func(_ context.Context, asset int64) (int, error) { return catalog.Decimals(asset) }}
	do := func(m ledger.Movement) {
		_, err := books.Do(ctx, audit.Operator, m)
		storetest.Must(l.t, err)
	}
	now := time.Now().UTC()
	waiting := transaction.Deposit{ID: id.New(now), UserID: l.user.ID, Asset: pair.ID, Amount: amount.Must("0.25"),
		Status: transaction.WaitingTreasury, TxID: "4a5e1e4b", ToAddress: "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
		SenderInfo: `{"name":"Ada Lovelace"}`, At: now}
	do(transaction.Receive(waiting))
	another := waiting
	another.ID = id.New(now)
	do(transaction.Receive(another))
	paid := waiting
	paid.ID, paid.Status = id.New(now), transaction.Finalized
	do(transaction.Receive(paid))
	out := transaction.Withdrawal{UserID: l.user.ID, Asset: pair.ID, Amount: amount.Must("0.1"),
		ToAddress: waiting.ToAddress, At: now}
	for range 2 {
		out.ID = id.New(now)
		m, err := transaction.Enqueue(out, transaction.Queued{Status: transaction.HotWalletIsEmpty, TxID: "4a5e1e4b"},
			amount.Amount{})
		storetest.Must(l.t, err)
		do(m)
	}
	l.said["deposit"] = map[string]any{"waiting": waiting.ID}
	l.said["withdrawal"] = map[string]any{"queued": out.ID}
}

// limit adds a limit of the service shop, and the role that may count under it.
func (l *live) limit() {
	l.t.Helper()
	who := blackbox.Headers{"x-auth": l.admin.xAuth}
	var resources []struct {
		ResourceID   int64
		ResourceCode string
	}
	l.Ok(l.t, "GET", "/resource/resources?resourceContext=API", nil, who).Read(l.t, &resources)
	var role struct{ Data struct{ ID int64 } }
	l.Ok(l.t, "POST", "/admin/roles", `{"code":"shop","name":"Shop"}`, who).Read(l.t, &role)
	for _, r := range resources {
		if r.ResourceCode == "POST /limit" {
			l.Ok(l.t, "POST", "/admin/role-resource-permission",
				map[string]any{"roleId": role.Data.ID, "resourceId": r.ResourceID, "permission": "ALLOW"}, who)
		}
	}
	l.Ok(l.t, "POST", "/admin/system/waf/rules", `{"appId":"shop","label":"shop-orders","type":"rate_limit",
		"period":60000,"limit":100000,"expireAt":0,"targetEntityType":"IP","targetResources":["LIMIT orders"],
		"status":"ACTIVE"}`, who)
}
