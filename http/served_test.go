package httpapi_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/change"
	"castellan/domain/kit/change/changetest"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/permit/resource"
	"castellan/domain/proof/device"
	httpapi "castellan/http"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httpresource "castellan/http/permit/resource"
	"castellan/http/rest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/permit"
	"castellan/persistence/proof"
)

// service is the whole table over a real database, with the guards and the
// tokens of the program. The sections of the registry and of roles work; no
// test here calls the handlers of others.
type service struct {
	*apitest.Site
	t      *testing.T
	db     *persistence.DB
	admin  *resource.Admin
	tokens *token.Issuer
	users  map[string]string // name → id
}

// scheduled is the key of the one scheduled client.
const scheduled = "rates.secret"

// both runs a test on a fresh installation on each database, in parallel with other tests.
func both(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	t.Parallel()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) { test(t, serve(t, db)) })
}

func serve(t *testing.T, db *persistence.DB) *service {
	t.Helper()
	ctx := t.Context()
	store, users := permit.NewResources(db), account.NewUsers(db)
	storetest.Must(t, db.InTx(ctx,
		func(ctx context.Context) error { return resource.Sync(ctx, store, httpapi.Table(), time.Now()) }))
	live := resource.NewCache(store, users, httpapi.Table())
	admin := &resource.Admin{Store: store, Accounts: users, Table: httpapi.Table(),
		Changes: admin.Changes{Commit: db, Now: time.Now, Topic: change.Roles, Lock: store.Lock, Follow: live.Follow}}
	s := &service{t: t, db: db, admin: admin, users: map[string]string{}}
	for i, name := range []string{"root", "plain", "empty", "allowed", "audited", "denied", "torn"} {
		u := user.New(id.New(time.Now()), time.Now())
		u.Phone = fmt.Sprintf("+9053200000%02d", i)
		if name == "root" {
			u.Roles = []string{user.RoleAdmin}
		}
		storetest.Must(t, db.Commit(ctx, user.Add{User: u}))
		s.users[name] = u.ID
	}
	storetest.Must(t, live.Reload(ctx))
	ring := keyringtest.Ring(t, nil)
	s.tokens = token.NewIssuer(ring, "castellan", "default", time.Now, 100)
	devices := &device.Service{Store: proof.NewDevices(db), Users: users, Commit: db, Ring: ring,
		Audience: "https://id.example.com", Now: time.Now, Log: slog.Default()}
	guards := auth.Guards{Tokens: s.tokens, Devices: devices, Tenant: "default", Judge: live.Judge,
		MayWrite: live.MayWrite,
		Cron:     func(header string) (string, bool) { return "rates", header == scheduled },
		Feed:     &changetest.Feed{}, Live: func(string, string, int64) bool { return true },
		AllowsIP: func(string, netip.Addr) bool { return true }}
	s.Site = apitest.Serve(t, edge.Options{Guards: guards.Table(), Authorize: guards.Authorize,
		ActsAsAdmin: guards.ActsAsAdmin, MayName: guards.MayName, Starter: auth.Starter{},
		SecondPerson: auth.SecondPerson{}, Idempotency: &auth.Idempotent{},
		Verify: func(context.Context, rest.Caller, *rest.Endpoint, any) error { return nil }},
		apitest.Endpoints(httpapi.Endpoints(httpresource.Group{Admin: admin}, httpresource.Roles{Admin: admin}))).
		As("anonymous")
	return s
}

// token is a fresh token of a named account; it claims to belong to all.
func (s *service) token(name string) string {
	s.t.Helper()
	if name == "" {
		return ""
	}
	now := time.Now()
	raw, err := s.tokens.Sign(token.Claims{Class: token.XAuth, ID: id.New(now), Subject: s.users[name], SessionID: "s1",
		SV: 1, AuthTime: now, IssuedAt: now, ExpiresAt: now.Add(time.Hour),
		Roles: []string{"user", "admin"}})
	storetest.Must(s.t, err)
	return raw
}

// send makes a request; headers are pairs.
func (s *service) send(line, body string, headers ...string) (status int, answer string, link string) {
	s.t.Helper()
	var sent []string
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			sent = append(sent, headers[i:i+2]...)
		}
	}
	res, answer := s.Send(line, body, sent...)
	return res.StatusCode, answer, res.Header.Get("Link") + res.Header.Get("X-Total-Count")
}

// wants makes a request as the administrator and checks the answer: a body for
// 200, where <id> and <time> stand for any, else "CODE field field".
func (s *service) wants(line, body string, status int, want string) string {
	s.t.Helper()
	got, answer, _ := s.send(line, body, "x-auth", s.token("root"))
	shown := answer
	if got != 200 {
		shown = apitest.Refusal(answer)
	} else {
		shown = anyTime.ReplaceAllString(anyID.ReplaceAllString(shown, `$1<id>`), `"<time>"`)
	}
	if got != status || shown != want {
		s.t.Errorf("%s %s:\n got %d %s\nwant %d %s", line, body, got, shown, status, want)
	}
	return answer
}

var (
	anyTime = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`)
	anyID   = regexp.MustCompile(`("(?:id|roleId|resourceId|resourceTypeId)":"?)\d+`)
)

// made reads the id out of an answer that is {"id":n} or {"data":{"id":n,…}}.
func (s *service) made(line, body string) int64 {
	s.t.Helper()
	status, answer, _ := s.send(line, body, "x-auth", s.token("root"))
	var x struct {
		ID   int64
		Data struct{ ID int64 }
	}
	storetest.Must(s.t, json.Unmarshal([]byte(answer), &x))
	if status != 200 || x.ID+x.Data.ID < 1 {
		s.t.Fatalf("%s %s: %d %s", line, body, status, answer)
	}
	return x.ID + x.Data.ID
}

// list reads a list into maps.
func (s *service) list(line string) (out []map[string]any) {
	s.t.Helper()
	status, answer, _ := s.send(line, "", "x-auth", s.token("root"))
	storetest.Equal(s.t, status, 200, line, answer)
	storetest.Must(s.t, json.Unmarshal([]byte(answer), &out))
	return out
}

// registered is the id of a resource of the endpoint table.
func (s *service) registered(code string) int64 {
	s.t.Helper()
	all := storetest.Value(s.admin.Store.Resources(s.t.Context()))(s.t)
	for _, r := range all {
		if r.Code == code {
			return r.ID
		}
	}
	s.t.Fatalf("%s is not registered", code)
	return 0
}

// moving are the tables that change although a request is refused: what counts and
// records refusals, and what the background does.
var moving = []string{
	"audit", "audit_checkpoint", "attempt_budget", "password_guard", "change", "session", "session_key", "login_history",
	"outbox", "challenge", "outcome", "job", "job_item", "seed", "device", "device_proof",
	"provider_account", "provider_snapshot", "provider_balance", "asset_day", "application_search",
}

// moves reports whether a table is one of moving.
func moves(table string) bool { return slices.Contains(moving, table) }

// reader returns a function that reads the rows of all tables that are not skipped, sorted, by table. It sends one
// statement: one for each of a hundred tables takes ten times as long. more are further queries of a name and a text.
func (l *live) reader(db *sql.DB, skip func(table string) bool, more ...string) (read func() map[string]string) {
	l.t.Helper()
	columns := `SELECT m.name, 'CAST("' || c.name || '" AS TEXT)' FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND c.name <> 'folded'`
	if l.postgres() {
		columns = `SELECT relname, format(CASE atttypid WHEN 'bytea'::regtype THEN 'encode(%I, ''escape'')'
			ELSE 'CAST(%I AS TEXT)' END, attname) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
			WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND attnum > 0
			AND NOT attisdropped AND attname <> 'folded'`
	}
	prepare := func(text string) func() map[string][]string {
		statement := storetest.Value(db.Prepare(text))(l.t)
		return func() map[string][]string {
			rows := storetest.Value(statement.Query())(l.t)
			defer rows.Close()
			found := map[string][]string{}
			for rows.Next() {
				var name, value string
				storetest.Must(l.t, rows.Scan(&name, &value))
				found[name] = append(found[name], value)
			}
			storetest.Must(l.t, rows.Err())
			return found
		}
	}
	empty := map[string]string{}
	for table, cells := range prepare(columns)() { // without "folded", which the background fills
		if !skip(table) {
			empty[table] = ""
			more = append(more, fmt.Sprintf(`SELECT '%s', coalesce(%s, 'NULL') FROM "%s"`, table,
				strings.Join(cells, ", 'NULL') || ' ' || coalesce("), table))
		}
	}
	if len(empty) < 20 {
		l.t.Errorf("%d tables: the dump is broken", len(empty))
	}
	query := prepare(strings.Join(more, " UNION ALL "))
	return func() map[string]string {
		all := maps.Clone(empty)
		for table, rows := range query() {
			slices.Sort(rows)
			all[table] = strings.Join(rows, "\n")
		}
		return all
	}
}

func (l *live) postgres() bool { return !strings.HasPrefix(l.cfg.Database.URL.Reveal(), "sqlite:") }

// open is a connection beside the program's.
func (l *live) open() *sql.DB {
	l.t.Helper()
	driver, dsn := "pgx", l.cfg.Database.URL.Reveal()
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		driver, dsn = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)"
	}
	return storetest.Value(sql.Open(driver, dsn))(l.t)
}

// dump is the content of the tables that stand still.
func (l *live) dump() map[string]string { return l.contents(moves) }

func (l *live) contents(skip func(table string) bool) map[string]string {
	l.t.Helper()
	db := l.open()
	defer db.Close()
	return l.reader(db, skip)()
}

// forgets checks that a text is in no table.
func (l *live) forgets(text string) {
	l.t.Helper()
	for table, rows := range l.contents(func(string) bool { return false }) {
		if at := strings.Index(rows, text); at >= 0 {
			l.t.Errorf("the table %s holds what the server owns, as a client sent it: %.300s", table, rows[max(0, at-200):])
		}
	}
}

func (l *live) count(table string) (n int) {
	l.t.Helper()
	db := l.open()
	defer db.Close()
	storetest.Must(l.t, db.QueryRow("SELECT count(*) FROM "+table).Scan(&n))
	return n
}
