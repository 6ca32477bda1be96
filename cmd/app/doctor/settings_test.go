package doctor

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/config"
	"castellan/domain/account/password/argon2id"
	"castellan/domain/factor/mfa"
	"castellan/domain/gate/gateway"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/setup"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/servicekey"
	"castellan/persistence"
	"castellan/persistence/persistencetest"
)

//go:embed testdata/harmless.tsv
var harmless string

// Every setting and every parameter is checked, or is listed as harmless with a reason. A new one fails here.
func TestEveryKeyIsChecked(t *testing.T) {
	reasons := map[string]string{}
	for line := range strings.Lines(harmless) {
		key, reason, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if reason == "" || reasons[key] != "" {
			t.Errorf("harmless: %q has no reason, or is listed twice", key)
		}
		reasons[key] = reason
	}
	j := judgeSettings(production(t))
	j.judgeParameters(parameter.NewCache(nil).Set())
	all := append(config.AllKeys(), parameter.Codes()...)
	for _, key := range all {
		switch {
		case !j.judged[key] && reasons[key] == "":
			t.Errorf("%s is neither judged (settings.go) nor listed in testdata/harmless.tsv", key)
		case j.judged[key] && reasons[key] != "":
			t.Errorf("%s is judged and listed as harmless", key)
		}
		delete(reasons, key)
		delete(j.judged, key)
	}
	if len(reasons) > 0 || len(j.judged) > 0 {
		t.Errorf("no such keys: harmless %v, judged %v", reasons, j.judged)
	}
}

// production loads settings of production mode as a start does. Each is NAME=value.
func production(t *testing.T, settings ...string) config.Config {
	t.Helper()
	dir := t.TempDir()
	environ := []string{"CASTELLAN_DATA_DIR=" + filepath.Join(dir, "data"),
		"CASTELLAN_KEYS_MASTER_FILE=" + filepath.Join(dir, "master.key")}
	for _, s := range settings {
		environ = append(environ, "CASTELLAN_"+s)
	}
	return storetest.Value(config.Load("", environ, Check))(t)
}

// An empty production configuration on a new machine reports each empty default that switches a control or a
// feature off.
func TestEmptyDefaults(t *testing.T) {
	c, err := config.Load("", []string{"CASTELLAN_DATA_DIR=" + filepath.Join(t.TempDir(), "data")}, Check)
	storetest.Must(t, err)
	r := Examine(t.Context(), c, nil)
	want := map[setup.Severity][]string{
		setup.Control: {"keys.master_file", "mfa.guarded", "mfa.guard_administration", "mfa.four_eyes",
			"addressbook.waiting_time", "limits.country_per_day", "audit.anchor_url", mfaPolicies},
		setup.Fault: {"database.url"},
		setup.Feature: {"http.public_url", "http.cors_origins", "database.url", "cluster.gossip_addr", identityURL,
			"mail.host", "sms.url",
			"push.contact", "push.webhook_secret", "metrics.addr", "tracing.endpoint", "geo.mmdb_file",
			"registration.enabled", "rates.url", "providers.accounts", "accounting.url", "TREASURY", "WITHDRAWAL_FEE",
			"WITHDRAWAL_MINIMUM", "EXPLORER"},
		setup.OK: {"clock", "data_dir", "password hash", "keys.master_file", "files.folder"},
	}
	if argon2id.Vectors() == "go" { // this machine lacks AVX2
		want[setup.OK] = slices.Delete(want[setup.OK], 2, 3)
		want[setup.Feature] = append(want[setup.Feature], "password hash")
	}
	got := map[setup.Severity][]string{}
	for _, f := range r.Findings {
		got[f.Severity] = append(got[f.Severity], f.Key)
		if f.State == "" || f.Severity != setup.OK && (f.Effect == "" || f.Mend == "") ||
			strings.ContainsAny(f.String(), "\n\r") {
			t.Errorf("%+v is not whole", f)
		}
	}
	for s, keys := range want {
		if !slices.Equal(got[s], keys) {
			t.Errorf("%s: %q,\nwant %q", s, got[s], keys)
		}
	}
	if !r.Production || r.CheckedAt.IsZero() || !strings.Contains(r.Findings[8].State, "no database yet") {
		t.Errorf("production %v, checked at %v, %v", r.Production, r.CheckedAt, r.Findings[8])
	}
	if _, err := os.Stat(c.DataDir); err == nil {
		t.Error("the data folder was made")
	}
}

// Each setting is checked on both sides of its bound.
func TestSettingsAreCheckedAtTheirBounds(t *testing.T) {
	const proxied = "HTTP_PUBLIC_URL=https://id.example.com"
	clustered := []string{"DATABASE_URL=postgres://a/b", "CLUSTER_GOSSIP_ADDR=127.0.0.1:1",
		"CLUSTER_ACTOR_ADDR=127.0.0.1:2", "CLUSTER_TLS_DIR=/t"}
	for _, c := range []struct {
		settings  []string
		key, want string // a part of the line; "": no such finding
	}{
		{nil, "password.argon2_memory_kib", ""},
		{[]string{"PASSWORD_ARGON2_MEMORY_KIB=19455"}, "password.argon2_memory_kib", "control off (19455 KiB"},
		{[]string{"PASSWORD_ARGON2_MEMORY_KIB=12288", "PASSWORD_ARGON2_TIME=3"}, "password.argon2_memory_kib", ""},
		{[]string{"PASSWORD_ARGON2_MEMORY_KIB=47104", "PASSWORD_ARGON2_TIME=1"}, "password.argon2_memory_kib", ""},
		{[]string{"PASSWORD_ARGON2_MEMORY_KIB=47103", "PASSWORD_ARGON2_TIME=1"}, "password.argon2_memory_kib", "OWASP"},
		{[]string{"HTTP_PUBLIC_URL=http://id.example.com"}, "http.public_url", "control off (not https)"},
		{[]string{"HTTP_PUBLIC_URL=http://localhost:80"}, "http.public_url", ""},
		{[]string{"HTTP_ADDR=0.0.0.0:80"}, "http.public_url", "feature off (derived"},
		{[]string{proxied}, "http.public_url", ""},
		{[]string{proxied}, "http.trusted_proxies", "control off (empty"},
		{[]string{proxied, "HTTP_TRUSTED_PROXIES=10.0.0.0/8"}, "http.trusted_proxies", ""},
		{[]string{proxied, "HTTP_TRUSTED_PROXIES=203.0.112.0/15"}, "http.trusted_proxies",
			"control off (contains 203.0.0.0/15)"},
		{[]string{proxied, "HTTP_TRUSTED_PROXIES=2001:db8::/31"}, "http.trusted_proxies", "contains 2001:db8::/31"},
		{[]string{proxied, "HTTP_TRUSTED_PROXIES=203.0.113.0/24,2001:db8::/32,fd00::/8"}, "http.trusted_proxies", ""},
		{[]string{"HTTP_COUNTRY_HEADER=cf-ipcountry"}, "http.country_header", "is ignored"},
		{[]string{"HTTP_CORS_ORIGINS=https://app.example.com"}, "http.cors_origins", ""},
		{[]string{"HTTP_MAX_CONNECTIONS_PER_IP=0"}, "http.max_connections_per_ip", "control off (0)"},
		{[]string{"HTTP_MAX_CONNECTIONS_PER_IP=50", "HTTP_TRUSTED_PROXIES=10.0.0.1"}, "http.max_connections_per_ip",
			"feature off"},
		{[]string{"HTTP_MAX_CONNECTIONS_PER_IP=50"}, "http.max_connections_per_ip", ""},
		{[]string{"FIREWALL_BYPASS_CIDRS=::/0"}, "firewall.bypass_cidrs", "no firewall rule applies to any request"},
		{[]string{"FIREWALL_BYPASS_CIDRS=192.0.2.0/24"}, "firewall.bypass_cidrs", ""},
		{[]string{"FIREWALL_BYPASS_CIDRS=192.0.0.0/8"}, "firewall.bypass_cidrs", "control off (contains 192.0.0.0/8)"},
		{[]string{"FIREWALL_KEYS_PER_RULE=0"}, "firewall.keys_per_rule", "control off (0)"},
		{[]string{"LIMITS_EXEMPT_CIDRS=192.0.0.0/8"}, "limits.exempt_cidrs", "control off"},
		{[]string{"LIMITS_COUNTRY_PER_DAY=90=5000"}, "limits.country_per_day", ""},
		{[]string{"MFA_GUARDED=" + addAddress + "=ADD"}, "mfa.guarded", "lacks PATCH"},
		{[]string{"MFA_GUARDED=" + addAddress + "=ADD," + changeAddress + "=CHANGE"}, "mfa.guarded", ""},
		{[]string{"MFA_GUARD_ADMINISTRATION=true"}, "mfa.guard_administration", ""},
		{[]string{"MFA_FOUR_EYES=POST /admin/transaction/adjust-balance"}, "mfa.four_eyes", ""},
		{[]string{"ADDRESSBOOK_WAITING_TIME=1s"}, "addressbook.waiting_time", ""},
		{[]string{"KYC_IDENTITY_URL=https://register.example.com/x"}, "kyc.identity_url", ""},
		{[]string{"PUSH_ALLOW_PRIVATE=true"}, "push.allow_private", "control off"},
		{[]string{"PUSH_ALLOW_PRIVATE=true", "PUSH_HOSTS=hooks.internal"}, "push.allow_private", ""},
		{[]string{"PUSH_ALLOW_PRIVATE=true", "PUSH_ENABLED=false"}, "push.allow_private", ""},
		{[]string{"PUSH_ENABLED=false"}, "push.enabled", "feature off"},
		{[]string{"PUSH_ENABLED=false"}, "push.contact", ""},
		{[]string{"NOTICES_OFF=new-network"}, "notices.off", "control off (new-network)"},
		{[]string{"GEO_ALLOW_UNKNOWN=true"}, "geo.allow_unknown", "control off"},
		{[]string{"LOG_LEVEL=warn"}, "log.level", "control off (warn without audit.anchor_url)"},
		{[]string{"LOG_LEVEL=info"}, "log.level", ""},
		{[]string{"TRACING_ENDPOINT=https://otel.example.com", "TRACING_SAMPLE_RATIO=0"}, "tracing.sample_ratio",
			"feature off"},
		{[]string{"CLUSTER_JOIN=a:1"}, "cluster.join", "without cluster.gossip_addr"},
		{clustered, "cluster.join", "feature off (empty)"},
		{clustered, "cluster.gossip_addr", ""},
		{clustered, "cluster.tls_dir", ""},
		{clustered, "files.s3_url", "feature off (empty in a cluster)"},
		{clustered, "database.url", ""},
		{clustered, "keys.master_file", ""},
		{nil, "keys.master_file", ""}, // in another folder than the database
		{[]string{"DEV=true"}, "dev", "control off"},
		{[]string{"DEV=true", "LIMITS_ENABLED=false"}, "limits.enabled", "control off (false)"},
		{[]string{"DEV=true"}, "geo.allow_private", "control off"},
	} {
		var lines []string
		for _, f := range judgeSettings(production(t, c.settings...)).found {
			if f.Key == c.key {
				lines = append(lines, f.String())
			}
		}
		if c.want == "" && len(lines) > 0 || c.want != "" && (len(lines) != 1 || !strings.Contains(lines[0], c.want)) {
			t.Errorf("%q: %q, want one of %s with %q", c.settings, lines, c.key, c.want)
		}
	}
}

// A policy is reported when its methods have no channel, also if its action can still be completed.
func TestPoliciesWithoutChannelAreFound(t *testing.T) {
	mailed := []string{"MAIL_HOST=localhost", "MAIL_FROM=a@example.com"}
	policy := func(required int, codes ...string) mfa.Policy {
		p := mfa.Policy{ID: 7, ActionCode: "LOGIN", EntityType: mfa.General, Type: "COMMON", Required: required}
		for _, code := range codes {
			p.Methods = append(p.Methods, mfa.Choice{Code: code})
		}
		return p
	}
	past := policy(1, "SMS")
	past.ExpireAt = time.Now().Add(-time.Hour).UnixMilli()
	for name, c := range map[string]struct {
		settings []string
		policies []mfa.Policy
		want     string
	}{
		"none":                {mailed, nil, "control off (methods without a channel: RESET_PASSWORD)"},
		"development":         {[]string{"DEV=true"}, []mfa.Policy{policy(1, "SMS")}, ""},
		"SMS without gateway": {mailed, []mfa.Policy{policy(1, "SMS")}, "control off (policy 7 of LOGIN: SMS with"},
		"one of two":          {mailed, []mfa.Policy{policy(1, "SMS", "TOTP")}, "feature off (policy 7"},
		"two of two":          {mailed, []mfa.Policy{policy(2, "SMS", "TOTP")}, "control off (policy 7"},
		"expired":             {mailed, []mfa.Policy{past}, ""},
		"with channels":       {mailed, []mfa.Policy{policy(2, "MAIL", "TOTP")}, ""},
		"more than DEVICE_ADD": {mailed, []mfa.Policy{policy(2, "MAIL", "PUSH")},
			"control off (policy 7 of LOGIN: stronger than DEVICE_ADD)"},
	} {
		t.Run(name, func(t *testing.T) {
			j := &judge{judged: map[string]bool{}}
			j.judgePolicies(production(t, c.settings...), mfa.SeedMethods(), mfa.SeedActions(), c.policies)
			var lines []string
			for _, f := range j.found {
				if c.policies == nil || !strings.Contains(f.State, "RESET_PASSWORD") {
					lines = append(lines, f.String())
				}
			}
			if c.want == "" && len(lines) > 0 || c.want != "" && (len(lines) != 1 || !strings.Contains(lines[0], c.want)) {
				t.Errorf("%q, want %q", lines, c.want)
			}
		})
	}
}

// A route is listed with the traffic of the last day that it refuses, or would refuse after its trial, by server.
func TestSpellingsOfRoutesAreListed(t *testing.T) {
	of := func(id int64, reader, sent string, count int64) gateway.Spelled {
		return gateway.Spelled{RouteID: id, Reader: reader, Sent: sent, Count: count}
	}
	j := &judge{judged: map[string]bool{}}
	j.judgeSpelled([]gateway.Route{{ID: 1, Host: "shop.example", Method: "POST", Path: "/pay", Status: gateway.Active},
		{ID: 2, Method: "*", Path: "/me", Status: gateway.Trial}, {ID: 3, Path: "/off", Status: gateway.Inactive},
		{ID: 4, Path: "/quiet", Status: gateway.Active}},
		[]gateway.Spelled{of(1, "Windows", "pay.", 1), of(2, "Rails", "me.json", 4), of(3, "Rails", "off.x", 1),
			of(1, "Rails", "pay.\u202exml", 2), of(1, "Rails", "pay.json", 3), of(9, "Rails", "gone", 1)})
	const own = ", add a route with this spelling if it is another resource"
	if want := []string{`guard routes: feature off (5 requests of the last day for POST shop.example/pay, such as ` +
		`"pay.json"), refused, because of Rails` + own,
		`guard routes: feature off (1 requests of the last day for POST shop.example/pay, such as "pay."), refused, ` +
			`because of Windows` + own,
		`guard routes: feature off (4 requests of the last day for * /me, such as "me.json"), refused ` +
			`after the trial, because of Rails` + own}; !slices.Equal(lines(j.found), want) {
		t.Errorf("%q", lines(j.found))
	}
}

// lines are findings as the command prints them.
func lines(found []setup.Finding) (all []string) {
	for _, f := range found {
		all = append(all, f.String())
	}
	return all
}

// Actions that a new key or route would not get are listed.
func TestActionsOfServicesAreListed(t *testing.T) {
	j := &judge{judged: map[string]bool{}}
	j.judgeServiceActions(production(t, "MFA_GUARDED="+addAddress+"=ADD"), []mfa.Action{{Code: "PAYOUT"}},
		[]servicekey.Key{{Name: "shop", Actions: []string{"PAYOUT", "LOGIN", "ADD"}}},
		[]gateway.Route{{Method: "POST", Path: "/pay", Mode: gateway.Guarded, ActionCode: "OLD"},
			{Method: "POST", Path: "/own", Mode: gateway.Guarded, ActionCode: "ADMINISTRATION", Status: gateway.Active},
			{Method: "POST", Path: "/me", Mode: gateway.Session}})
	var states []string
	for _, f := range j.found {
		states = append(states, f.State+", "+f.Effect[:len("the action is")]+f.Effect[len(f.Effect)-6:])
	}
	if want := []string{"action LOGIN of service-key shop, the action isart it",
		"action ADD of service-key shop, the action isart it", "action OLD of POST /pay, the action hapolicy",
		"action ADMINISTRATION of POST /own, the action isequest"}; !slices.Equal(states, want) {
		t.Errorf("%q", states)
	}
}

// Active routes without a host are listed where each request needs a proof for a known address.
func TestProofsAtRoutesAreListed(t *testing.T) {
	routes := []gateway.Route{{Method: "GET", Path: "/me", Mode: gateway.Session, Status: gateway.Active},
		{Path: "/trial", Mode: gateway.Session, Status: gateway.Trial}, {Path: "/no", Mode: gateway.Refuse,
			Status: gateway.Active}, {Host: "h", Path: "/x", Mode: gateway.Session, Status: gateway.Active}}
	const known = "HTTP_PUBLIC_URL=https://id.example.com"
	for want, settings := range map[string][]string{"": {known},
		"requests, and the guard route GET /me has no host": {known, "SESSIONS_BIND=requests"}} {
		j, states := &judge{judged: map[string]bool{}}, ""
		j.judgeProofs(production(t, settings...), routes)
		for _, f := range j.found {
			states += f.State
		}
		storetest.Equal(t, states, want, settings)
	}
}

// A hanging check is a fault after its time, and delays no other.
func TestChecksAreBounded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	never := make(chan struct{})
	defer close(never)
	var seen [][]string
	all := []probe{{"hangs", "e", "m", func(context.Context) (string, error) { <-never; return "", nil }},
		{"works", "e", "m", func(context.Context) (string, error) { return "good", nil }},
		{"risk", "e", "m", func(context.Context) (string, error) {
			return "", shortcoming{Severity: setup.Control, State: "s", Effect: "f", Mend: "n"}
		}}}
	found := runProbes(ctx, config.Config{}, all, func(waiting []string) { seen = append(seen, waiting) })
	if found[0].Severity != setup.Fault || !strings.Contains(found[0].State, "no answer") ||
		found[1] != (setup.Finding{Key: "works", Severity: setup.OK, State: "good"}) ||
		found[2] != (setup.Finding{Key: "risk", Severity: setup.Control, State: "s", Effect: "f", Mend: "n"}) {
		t.Errorf("%+v", found)
	}
	if len(seen) != 4 || len(seen[0]) != 3 || len(seen[3]) != 0 || !slices.Equal(seen[2], []string{"hangs"}) {
		t.Errorf("progress %q", seen)
	}
}

// Accepted controls and features are listed with their reason, and a mistyped key is reported. So every operator can
// reach a report without controls that are off. A failed check cannot be accepted.
func TestAcceptedFindings(t *testing.T) {
	off := Examine(t.Context(), production(t), nil)
	var accepted []string
	for _, f := range off.Findings {
		if f.Severity == setup.Control {
			accepted = append(accepted, f.Key+"=too small")
		}
	}
	accepted = append(accepted, "mail.host=no mail here", "database.url=x", "mail.hots=a mistake")
	r := Examine(t.Context(), production(t, "DOCTOR_ACCEPTED="+strings.Join(accepted, ",")), nil)
	all := strings.Join(lines(r.Findings), "\n")
	for _, want := range []string{
		"mfa.four_eyes: accepted (empty), a single administrator can adjust balances and decide on transactions, " +
			"because: too small",
		"mail.host: accepted (empty), no mail is sent", "database.url: fault (there is no database yet",
		"doctor.accepted: feature off (mail.hots), the key has no finding"} {
		storetest.Contains(t, all, want)
	}
	if off.Count(setup.Control) == 0 || r.Count(setup.Control) != 0 {
		t.Errorf("%d controls are off, and %d after all were accepted", off.Count(setup.Control), r.Count(setup.Control))
	}
	_, err := config.Load("", []string{"CASTELLAN_DOCTOR_ACCEPTED=mail.host= "}, Check)
	storetest.Fails(t, err, "doctor.accepted", "without a reason")
}

// The register of one country is a control only where accounts have its numbers.
func TestRegisterOfOneCountry(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		of := func(settings ...string) (found []setup.Severity) {
			for _, f := range New(production(t, settings...), db).Report(t.Context(), false, nil).Findings {
				if f.Key == identityURL {
					found = append(found, f.Severity)
				}
			}
			return found
		}
		storetest.Same(t, of(), []setup.Severity{setup.Feature})
		persistencetest.Exec(t, db, "INSERT INTO user_identity (user_id, number, second_name, country, city_id, "+
			"district_id, address, occupation_id, created_at, updated_at) VALUES ('u1', 'x', '', '', '', '', '', '', 1, 1)")
		storetest.Same(t, of(), []setup.Severity{setup.Control, setup.Feature})
		storetest.Same(t, len(of("KYC_IDENTITY_URL=https://register.example.com/x")), 0)
	})
}
