package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
	"castellan/domain/permit/resource"
	httpapi "castellan/http"
	"castellan/http/rest"
	"castellan/internal/blackbox"
	"castellan/persistence/kit"
	"castellan/persistence/money"
)

const levelPath = "/level/update-level"

// path is one way in which an operator may try to decide about an account.
type path struct {
	key    string
	matter resource.Matter
	needs  []string // further endpoints that the operator must be permitted
	// users: the endpoint serves users too, who reach no record but the own ones.
	users bool
	// attack is a request that gives the operator something, harmless one that comes to
	// nothing once the account may be named; nil: it is not tried.
	attack, harmless func(op, of *operator) string
	of               func(of *operator) string // fills {id} in the path
}

func (p path) id(of *operator) string {
	if p.of == nil {
		return ""
	}
	return p.of(of)
}

// body fills a request: $USER is the account, and the rest are its records.
func body(text string) func(op, of *operator) string {
	return func(op, of *operator) string {
		return strings.NewReplacer("$USER", of.ID, "$DOCUMENT", of.document, "$BLOCKAGE", of.blockage,
			"$DEPOSIT", of.deposit, "$WITHDRAWAL", of.withdrawal, "$LINK", of.link, "$VPN", of.vpn,
			"$RULE", of.rule, "$PHONE", of.Phone, "$MAIL", of.Mail, "$OPERATOR", fmt.Sprint(op.index),
			"$FILE", rest.ExampleFile).Replace(text)
	}
}

// escalationPaths are all paths. Every endpoint that declares users has one.
func escalationPaths() []path {
	both := func(text string) (attack, harmless func(op, of *operator) string) { return body(text), body(text) }
	pair := func(key string, m resource.Matter, attack, harmless string) path {
		return path{key: key, matter: m, attack: body(attack), harmless: body(harmless)}
	}
	same := func(key string, m resource.Matter, text string) path {
		p := path{key: key, matter: m}
		p.attack, p.harmless = both(text)
		return p
	}
	const adjust = `{"userId":"$USER","networkCode":"BTC","amount":1,"type":"C",` +
		`"uniqueId":"of $OPERATOR $USER","currencyCode":`
	const block = `{"userId":"$USER","blockTypeId":2,"amount":0.001,"currencyCode":`
	const link = `{"userId":"$USER","corporateUserId":"acme","status":"active","role":"owner","countryCode":"90",` +
		`"phoneNumber":"$PHONE","email":"$MAIL"}`
	const rule = `{"label":"rule of $OPERATOR $USER","expireAt":0,"targetEntityType":"USER_ID",` +
		`"targetEntities":["$USER"],` +
		`"targetAllResources":true,"status":"ACTIVE","type":`
	const movements = `{"label":"of $OPERATOR $USER","kinds":["WITHDRAWAL"],"effect":{"type":"DENY"},` +
		`"except":{"accounts":["$USER"]},"status":`
	const terms = `{"base64String":"JVBERi0xLjQKJSVFT0YK","description":"x","userId":"$USER","name":`
	const foreign = `{"userId":"$USER","issuer":"https://id.example.com","subject":"of $OPERATOR"}`
	all := []path{
		same("POST /admin/user/update-fullname", rest.General, `{"userId":"$USER","name":"Ada","surname":"Lovelace"}`),
		pair("POST /admin/user/update-phonenumber", rest.Contact,
			`{"userId":"$USER","phoneNum":"55599900$OPERATOR","countryCode":"90"}`,
			`{"userId":"$USER","phoneNum":"$PHONE","countryCode":"90"}`),
		pair("POST /admin/user/update-email", rest.Contact,
			`{"userId":"$USER","mailAddress":"operator$OPERATOR@example.test"}`,
			`{"userId":"$USER","mailAddress":"$MAIL"}`),
		pair("POST /admin/user/close-user-authentication", rest.Standing, `{"userId":"$USER","status":"blocked"}`,
			`{"userId":"$USER","status":"active"}`),
		same("POST /admin/user/update-user-aml-confirmed", rest.Standing, `{"userId":"$USER"}`),
		pair("POST /user/update-kyc", rest.Standing,
			`{"userId":"$USER","kycConfirm":"manuelApproved","userDocumentId":["$DOCUMENT"],"documentId":"$DOCUMENT"}`,
			`{"userId":"$USER","kycConfirm":"manuelApproved","userDocumentId":["none"],"documentId":"none"}`),
		pair("POST /user/update-confirmed", rest.Standing, `{"userId":"$USER","addressConfirmed":"manuelApproved"}`,
			`{"userId":"$USER","addressConfirmed":"waitingApproval"}`),
		pair("POST "+levelPath, rest.Standing, `{"userId":"$USER","levelId":3}`, `{"userId":"$USER","levelId":0}`),
		pair("POST /blockage/insert-blockage-history", rest.Standing, block+`"BTC"}`, block+`"NONE"}`),
		pair("POST /blockage/update-blockage-history", rest.Standing, `{"id":"$BLOCKAGE","status":"released"}`,
			`{"id":"$BLOCKAGE","status":"active"}`),
		pair("POST /blockage/delete-blockage-history", rest.Standing, `{"id":"$BLOCKAGE"}`, `{"id":"1"}`),
		pair("POST /admin/transaction/adjust-balance", rest.Standing, adjust+`"BTC"}`, adjust+`"NONE"}`),
		pair("POST /admin/update-wallet-withdrawal-crypto-queue", rest.Standing, `{"withdrawalId":"$WITHDRAWAL","status":5}`,
			`{"withdrawalId":"$WITHDRAWAL","status":4,"currencyCode":"NONE"}`),
		{key: "POST /integration/withdrawals", matter: rest.Standing, attack: body(`{"externalId":"of $OPERATOR $USER",` +
			`"userId":"$USER","currencyCode":"BTC","network":"BTC","amount":1,` +
			`"address":"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"}`)},
		{key: "PATCH /integration/withdrawals/{id}", matter: rest.Standing, attack: body(`{"status":"processing"}`),
			of: func(of *operator) string { return of.withdrawal }},
		{key: "POST /admin/withdrawals/{id}/resume", matter: rest.Standing, attack: body("{}"),
			of: func(of *operator) string { return of.withdrawal }},
		{key: "POST /admin/withdrawals/{id}/cancel", matter: rest.Standing, attack: body("{}"),
			of: func(of *operator) string { return of.withdrawal }},
		same("POST /admin/update-status-transaction", rest.Standing,
			`{"transactionIds":["$DEPOSIT"],"status":"finalizedDeposit"}`),
		same("POST /admin/save-document", rest.General,
			`{"userId":"$USER","base64String":"$FILE","documentName":"passport.png","type":1}`),
		same("POST /user/update-document", rest.Standing, `{"id":"$DOCUMENT","status":"active"}`),
		same("POST /admin/insert-corporate-user", rest.General, link),
		same("POST /admin/update-corporate-user", rest.General, `{"id":"$LINK","role":"owner"}`),
		same("POST /admin/vpn-request", rest.General,
			`{"userId":"$USER","user_name":"x","type":"developer","comment":"x"}`),
		same("POST /admin/update-vpn-request", rest.General, `{"id":"$VPN","comment":"x"}`),
		pair("POST /admin/terms-of-service", rest.General, terms+`"Terms"}`, terms+`"`+strings.Repeat("x", 300)+`"}`),
		pair("POST /send-bulk-sms", rest.General, `{"userIds":["$USER"],"messageBody":"Your code?"}`,
			`{"userIds":["$USER"],"messageBody":"x","filter":{"status":"none"}}`),
		same("POST /admin/send-notification", rest.General, `{"memberId":["$USER"],"topic":"x","title":"x","body":"x"}`),
		pair("POST /admin/system/waf/rules", rest.General, rule+`"blacklist"}`, rule+`"rate_limit"}`),
		pair("PATCH /admin/system/waf/rules", rest.General, `{"label":"$RULE","status":"ACTIVE"}`,
			`{"label":"$RULE","limit":-1}`),
		pair("POST /admin/money/rules", rest.Standing, movements+`"INACTIVE"}`, movements+`"ON"}`),
		same("PATCH /admin/money/rules", rest.Standing, `{"label":"none","except":{"accounts":["$USER"]}}`),
		same("POST /admin/system/waf/counters/reset", rest.General, `{"label":"$RULE","entity":"$USER","reason":"x"}`),
		same("POST /admin/update-parameters", rest.Standing, `{"id":$AMLCONTROL,"json":{"ignoredUsers":["$USER"]}}`),
		same("POST /admin/user/link", rest.Contact, foreign),
		same("DELETE /admin/user/link", rest.Contact, foreign),
		same("DELETE /admin/user/security", rest.Contact, `{"userId":"$USER","factor":"AUTHENTICATOR"}`),
		same("POST /admin/user-roles", rest.General, `{"userId":"$USER","roleCode":"admin"}`),
		same("DELETE /admin/user-roles", rest.General, `{"userId":"$USER","roleCode":"admin"}`),
		{key: "POST /admin/jobs/{id}/cancel", matter: rest.General, attack: body(""),
			of: func(of *operator) string { return of.job }},
		{key: "POST /admin/approvals/{id}/refuse", matter: rest.Standing, needs: []string{"POST " + levelPath},
			attack: body(`{"reason":"no"}`), of: func(of *operator) string { return of.approval }},
		{key: "POST /admin/approvals/{id}/approve", matter: rest.Standing, needs: []string{"POST " + levelPath},
			attack: body(""), harmless: body(""), of: func(of *operator) string { return of.approval }},
	}
	all = append(all,
		same("POST /integration/deposits", rest.Standing, `{"externalId":"of $OPERATOR $USER","userId":"$USER",`+
			`"currencyCode":"BTC","network":"BTC","amount":1,"txId":"of $OPERATOR $USER","status":"waiting"}`),
		same("POST /integration/aml-findings", rest.Standing, `{"externalId":"of $OPERATOR $USER","userId":"$USER",`+
			`"status":"notRisky","source":"test"}`))
	described := same("POST /user/update-document", rest.General, `{"id":"$DOCUMENT","description":"x"}`)
	described.users = true
	return append(all, described)
}

// Every endpoint that declares users is tried.
func TestEveryEndpointWithUsersIsTried(t *testing.T) {
	tried := map[string]bool{}
	for _, p := range escalationPaths() {
		tried[p.key] = true
	}
	for _, e := range httpapi.Endpoints() {
		if e.Naming.Declared() && !tried[e.Key()] {
			t.Errorf("%s names users, and TestGrantsDoNotEscalate has no path for it", e.Key())
		}
	}
}

// own gives every account the records that paths name, and finds the parameter of the AML
// control. The seeded administrator makes what endpoints can make.
func (x *escalation) own() {
	x.t.Helper()
	root := blackbox.Headers{"x-auth": x.admin.xAuth}
	made := func(key, text string, of *operator, want int) string {
		x.t.Helper()
		method, target, _ := strings.Cut(key, " ")
		a := x.Do(x.t, method, target, body(text)(of, of), root).Is(x.t, want, "")
		var answer struct {
			ID   any
			Data struct{ ID, ApprovalID any }
		}
		d := json.NewDecoder(strings.NewReader(string(a.Body)))
		d.UseNumber()
		_ = d.Decode(&answer) // some answer with an empty object
		for _, id := range []any{answer.ID, answer.Data.ID, answer.Data.ApprovalID} {
			if id != nil {
				return fmt.Sprint(id)
			}
		}
		return ""
	}
	for _, c := range x.accounts {
		x.fundOperator(c)
		c.rule = fmt.Sprintf("of-%d", c.index)
		c.document = made("POST /admin/save-document", `{"userId":"$USER","base64String":"$FILE",`+
			`"documentName":"passport.png","type":1}`, c, 200)
		c.blockage = made("POST /blockage/insert-blockage-history",
			`{"userId":"$USER","currencyCode":"BTC","blockTypeId":2,"amount":0.01}`, c, 200)
		c.link = made("POST /admin/insert-corporate-user", `{"userId":"$USER","corporateUserId":"acme","status":"active",`+
			`"role":"owner","countryCode":"90","phoneNumber":"$PHONE","email":"$MAIL"}`, c, 200)
		c.vpn = made("POST /admin/vpn-request", `{"userId":"$USER","user_name":"x","type":"developer","comment":"x"}`, c, 200)
		made("POST /admin/system/waf/rules", `{"label":"$RULE","type":"rate_limit","period":60000,"limit":100,"expireAt":0,`+
			`"targetEntityType":"USER_ID","targetEntities":["$USER"],"targetResources":["GET /admin/audit"]}`, c, 200)
		c.approval = made("POST "+levelPath, `{"userId":"$USER","levelId":2}`, c, 202)
	}
	var parameters []struct{ ID json.Number }
	x.Ok(x.t, "GET", "/admin/get-parameters?code=AMLCONTROL", nil, root).Read(x.t, &parameters)
	for i, p := range x.paths {
		if p.key != "POST /admin/update-parameters" {
			continue
		}
		fill := func(op, of *operator) string {
			return strings.ReplaceAll(p.attack(op, of), "$AMLCONTROL", parameters[0].ID.String())
		}
		x.paths[i].attack, x.paths[i].harmless = fill, fill
	}
}

// fundOperator gives an account money, a deposit that waits, a withdrawal in the queue and a
// job that it has started.
func (x *escalation) fundOperator(c *operator) {
	x.t.Helper()
	ctx := x.t.Context()
	catalog := storetest.Value(currency.Load(ctx, money.NewCurrencies(x.v.DB)))(x.t)
	pair, _ := catalog.Info(new("BTC"), new("BTC"))
	books := &ledger.Ledger{Store: money.NewLedger(x.v.DB), Commit: x.v.DB, Now: time.Now,
		Decimals: func(_ context.Context, asset int64) (int, error) { return catalog.Decimals(asset) }}
	now := time.Now().UTC()
	d := transaction.Deposit{ID: id.New(now), UserID: c.ID, Asset: pair.ID, Amount: amount.Must("0.25"),
		Status: transaction.Finalized, ToAddress: "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
		SenderInfo: `{"name":"Ada Lovelace"}`, At: now}
	paid := transaction.Receive(d)
	d.ID, d.Status = id.New(now), transaction.WaitingTreasury
	c.deposit = d.ID
	out := transaction.Withdrawal{ID: id.New(now), UserID: c.ID, Asset: pair.ID, Amount: amount.Must("0.1"),
		ToAddress: d.ToAddress, At: now}
	c.withdrawal = out.ID
	queued, err := transaction.Enqueue(out, transaction.Queued{Status: transaction.HotWalletIsEmpty}, amount.Amount{})
	storetest.Must(x.t, err)
	for _, m := range []ledger.Movement{paid, transaction.Receive(d), queued} {
		_, err := books.Do(ctx, audit.Operator, m)
		storetest.Must(x.t, err)
	}
	jobs := &job.Service{Store: kit.NewJobs(x.v.DB), Changes: x.v.Changes(""), Seal: x.v.Ring.Seal}
	storetest.Must(x.t, x.v.DB.InTx(ctx, func(ctx context.Context) error {
		j, _, err := jobs.Start(ctx, audit.By{UserID: c.ID}, job.Request{Kind: "send-bulk-sms", At: now.Add(time.Hour),
			Params: map[string]any{}})
		c.job = j.ID
		return err
	}))
}
