package office_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/intent"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/foureyes"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httpfoureyes "castellan/http/office/foureyes"
	"castellan/http/rest"
	"castellan/persistence"
	"castellan/persistence/kit"
	officestore "castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

// foureyesOffice is the section, where "clerk" has requested POST /things. Accounts in permitted may use it too.
type foureyesOffice struct {
	*apitest.Site
	*foureyes.Service
	t         *testing.T
	db        *persistence.DB
	group     httpfoureyes.Group
	now       time.Time
	permitted []string
	lower     string            // an account that holds fewer permissions than the user named by the request (D-AUTH-03)
	account   challenge.Account // of every person
	live      bool              // whether sessions of the requester still hold
	shared    [2]string         // the accounts with a device in common
	may       error             // of permit
	ran       []string          // executed requests
	commands  []string          // of the challenges that were started
	refusal   error             // of the request, by Look and Run
	hidden    bool              // whether Look returns no fields
	vague     error             // of the description of the request, by Details
	before    any               // state of the record that the request would change, by Look
	fresh     []time.Duration   // that an update of the snapshot had
}

func (o *foureyesOffice) Start(
	_ context.Context, who rest.Caller, action string, command []byte,
) (any, []rest.Header, error) {
	o.commands = append(o.commands, action+" "+who.UserID+" "+string(command))
	return json.RawMessage(`{"success":true}`), nil, nil
}

func newOffice(t *testing.T) *foureyesOffice {
	db, ring := persistencetest.SQLite(t), keyringtest.Ring(t, time.Now)
	o := &foureyesOffice{t: t, db: db, now: time.UnixMilli(1_700_000_000_000).UTC(), permitted: []string{"boss"},
		before: map[string]int{"n": 1}, account: challenge.Account{CV: 3, SV: 4}, live: true}
	o.Service = &foureyes.Service{Store: officestore.NewFourEyes(db), Seal: ring.Seal, Open: ring.Open,
		TTL: 15 * time.Minute, Changes: admin.Changes{Commit: db, Now: func() time.Time { return o.now }},
		Account: func(_ context.Context, userID string) (challenge.Account, error) {
			if userID == "unknown" {
				return challenge.Account{}, fault.New(fault.RecordNotFound, "no such account")
			}
			return o.account, nil
		},
		Live: func(_, sessionID string, sv int64) bool { return o.live && sessionID == "s1" && sv == 4 },
		Shared: func(_ context.Context, a, b string) (bool, error) {
			return a == o.shared[0] && b == o.shared[1], nil
		},
		Run: func(_ context.Context, request json.RawMessage) (json.RawMessage, error) {
			o.ran = append(o.ran, string(request))
			return json.RawMessage(`{"data":{"id":7}}`), o.refusal
		},
		Secret: func(endpoint string) bool { return endpoint == "POST /keys" },
		Public: func(string, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{"data":{}}`), nil }}
	o.group = httpfoureyes.Group{Service: o.Service,
		RunAs: func(_ context.Context, who rest.Caller, request json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"data":{"key":"s3cret of ` + who.UserID + `"}}`), o.refusal
		},
		Permit: func(_ context.Context, who rest.Caller, key string) error {
			if key == "POST /things" && !slices.Contains(o.permitted, who.UserID) {
				return fault.New(fault.Forbidden, "no permission")
			}
			return nil
		},
		Fresh: func(ctx context.Context) error {
			deadline, _ := ctx.Deadline()
			o.fresh = append(o.fresh, time.Until(deadline))
			return nil
		},
		Judge: func(_ context.Context, who rest.Caller, request json.RawMessage) error {
			if request == nil {
				t.Error("a request without content is judged")
			}
			if who.UserID == o.lower && string(request) == `{"n":2}` {
				return fault.New(fault.Forbidden, "the request names a user who holds more permissions")
			}
			return nil
		},
		Look: func(_ context.Context, request json.RawMessage) (json.RawMessage, []rest.Change, error) {
			if o.hidden {
				return nil, nil, o.refusal
			}
			return request, []rest.Change{{Of: "thing", ID: "7", Before: o.before, After: nil}}, o.refusal
		},
		Details: func(request json.RawMessage) ([]challenge.Detail, error) {
			return []challenge.Detail{{Key: "thing", Value: string(request)}}, o.vague
		},
	}
	guards := apitest.Guards()
	everybody := func(context.Context, rest.Caller, *rest.Endpoint) error { return nil }
	o.Site = apitest.Serve(t, edge.Options{Guards: guards.Table(), Authorize: everybody, ActsAsAdmin: guards.ActsAsAdmin,
		Idempotency: &auth.Idempotent{Store: kit.NewIdempotency(db), Commit: db, Ring: ring, Now: time.Now},
		Starter:     o}, o.group).Below("/admin/approvals")
	return o
}

// stand makes a request of "clerk" and returns its id.
func (o *foureyesOffice) stand() string { return o.standAt("/things") }

func (o *foureyesOffice) standAt(path string) string {
	o.t.Helper()
	r := o.submit(path)
	o.now = o.now.Add(time.Second)
	return r.ID
}

func (o *foureyesOffice) submit(path string) foureyes.Request {
	o.t.Helper()
	return storetest.Value(o.Submit(o.t.Context(), audit.By{UserID: "clerk"}, foureyes.Draft{Method: "POST", Path: path,
		Summary: "THING_ADD", Request: json.RawMessage(`{"n":2}`), SessionID: "s1"}))(o.t)
}

// pending is a request as the list shows it.
func pending(id string) string {
	return `"id":"` + id + `","method":"POST","path":"/things","summary":"THING_ADD","requestedBy":"clerk",` +
		`"requestedAt":"2023-11-14T22:13:20.000Z","expiresAt":"2023-11-14T22:28:20.000Z","status":"PENDING",` +
		`"decidedBy":null,"decidedAt":null,"reason":null,"result":null`
}

// The content of a request is shown only to its requester and to callers with permission for its endpoint.
func TestContentNeedsPermission(t *testing.T) {
	o := newOffice(t)
	id := o.stand()
	content := `,"request":{"n":2},"changes":[{"of":"thing","id":"7","before":{"n":1},"after":null}]`
	for who, want := range map[string]string{"clerk": content, "boss": content, "other": ""} {
		o.As(who).Wants("GET /"+id, "", 200, "{"+pending(id)+want+"}")
	}
	o.lower = "boss"
	o.As("boss").Wants("GET /"+id, "", 200, "{"+pending(id)+"}")
	o.permitted, o.lower = nil, ""
	o.As("boss").Wants("GET /"+id, "", 200, "{"+pending(id)+"}")
	o.As("boss").Wants("GET /unknown", "", 404, "RECORD_NOT_FOUND")
	o.As("boss").Wants("GET ", "", 200, "[{"+pending(id)+"}]")
}

// A request that would be refused now says why, and one that has nothing to show says nothing.
func TestRefusalIsShown(t *testing.T) {
	o := newOffice(t)
	id := o.stand()
	o.refusal = fault.New(fault.InvalidState, "the balance is too small")
	o.As("boss").Wants("GET /"+id, "", 200,
		"{"+pending(id)+`,"request":{"n":2},"refusal":"the balance is too small"}`)
	o.refusal = fault.New(fault.Internal, "a secret of the machine")
	if status, answer := o.As("boss").Call("GET /"+id, ""); status != 500 || strings.Contains(answer, "secret") {
		t.Errorf("%d %s", status, answer)
	}
	o.now = o.now.Add(time.Hour)
	for _, who := range []string{"boss", "clerk", "other"} {
		o.As(who).Wants("GET /"+id, "", 200, "{"+strings.Replace(pending(id), "PENDING", "EXPIRED", 1)+"}")
	}
}

// The list has the statuses of the present instant, newest first. A page links to the next one and counts all matching
// requests.
func TestList(t *testing.T) {
	o := newOffice(t)
	first := o.stand()
	o.now = o.now.Add(time.Hour)
	second := o.stand()
	for query, want := range map[string]string{"": second + " " + first, "?status=PENDING": second,
		"?status=EXPIRED": first, "?status=APPROVED": "", "?limit=1&count=true": second} {
		res, answer := o.Send("GET "+query, "")
		var all []struct{ ID string }
		storetest.Must(t, json.Unmarshal([]byte(answer), &all))
		var ids []string
		for _, r := range all {
			ids = append(ids, r.ID)
		}
		of := map[bool]string{true: "2"}[strings.Contains(query, "count")]
		next := strings.Contains(res.Header.Get("Link"), `rel="next"`)
		if got := strings.Join(ids, " "); res.StatusCode != 200 || got != want || next != (of != "") ||
			res.Header.Get("X-Total-Count") != of {
			t.Errorf("%q: %d %s, want %s; %v", query, res.StatusCode, got, want, res.Header)
		}
	}
}

// The requester takes a request back; every other caller needs the permission of its endpoint.
func TestRefuse(t *testing.T) {
	o := newOffice(t)
	id := o.stand()
	refused := strings.NewReplacer(`"PENDING","decidedBy":null,"decidedAt":null,"reason":null`,
		`"REFUSED","decidedBy":"boss","decidedAt":"2023-11-14T22:13:21.000Z","reason":"no"`).Replace(pending(id))
	o.As("other").Wants("POST /"+id+"/refuse", `{"reason":"no"}`, 403, "FORBIDDEN")
	o.As("boss").Wants("POST /"+id+"/refuse", `{"reason":"no"}`, 200, `{"data":{`+refused+`}}`)
	o.As("boss").Wants("POST /"+id+"/refuse", `{"reason":"no"}`, 409, "INVALID_STATE")
	storetest.Same(t, o.acts(id)[1:], []string{"FOUR_EYES_REFUSE boss clerk success POST /things"})
	mine := o.stand()
	o.As("clerk").Gets("POST /"+mine+"/refuse", `{"reason":"my mistake"}`, "200")
	o.As("boss").Wants("POST /unknown/refuse", `{"reason":"no"}`, 404, "RECORD_NOT_FOUND")
	storetest.Wants(t, storetest.Err(o.approve("boss", mine)), fault.InvalidState)
}

// An approval starts a challenge only for a caller who may approve.
func TestApproveStartsAChallenge(t *testing.T) {
	o := newOffice(t)
	id := o.stand()
	o.permitted = append(o.permitted, "clerk")
	o.permitted, o.lower = append(o.permitted, "low"), "low"
	for _, who := range []string{"clerk", "other", "low"} {
		o.As(who).Wants("POST /"+id+"/approve", "", 403, "FORBIDDEN")
	}
	o.As("boss").Wants("POST /unknown/approve", "", 404, "RECORD_NOT_FOUND")
	storetest.Equal(t, len(o.commands), 0, "started:", o.commands)
	o.As("boss").Wants("POST /"+id+"/approve", "", 200, `{"success":true}`)
	r := storetest.Value(o.Store.Get(t.Context(), id))(t)
	started, ok := strings.CutPrefix(strings.Join(o.commands, " and "), foureyes.ActionApprove+" boss ")
	var a struct {
		Digest   string
		Approver rest.Caller
	}
	storetest.Must(t, json.Unmarshal([]byte(started), &a))
	if !ok || a.Digest != intent.Digest(r.Sealed) || a.Approver.UserID != "boss" {
		t.Errorf("started: %v", o.commands)
	}
	storetest.Same(t, o.group.Action().Describe([]byte(started)), []challenge.Detail{
		{Key: mfa.HeaderRequest, Value: "THING_ADD"}, {Key: mfa.HeaderReference, Value: id},
		{Key: "thing", Value: `{"n":2}`}})
	command, err := json.Marshal(map[string]any{"id": id, "digest": intent.Digest([]byte("another")),
		"approver": rest.Caller{UserID: "boss", SessionID: "s2"}})
	storetest.Must(t, err)
	err = o.Changes.Commit.InTx(t.Context(), func(ctx context.Context) error {
		return storetest.Err(o.group.Action().Exec(ctx, challenge.Execution{Command: command}))
	})
	storetest.Wants(t, err, fault.InvalidState) // another request than the one that was shown
}

// execute completes the challenge of an approval by a person.
func (o *foureyesOffice) execute(id, who string) (challenge.Result, error) {
	r := storetest.Value(o.Store.Get(o.t.Context(), id))(o.t)
	command, err := json.Marshal(map[string]any{"id": id, "summary": "THING_ADD",
		"digest": intent.Digest(r.Sealed), "approver": rest.Caller{UserID: who, SessionID: "s2"}})
	storetest.Must(o.t, err)
	action, x := o.group.Action(), challenge.Execution{Command: command}
	var result challenge.Result
	err = o.Changes.Commit.InTx(o.t.Context(), func(ctx context.Context) (err error) {
		result, err = action.Exec(ctx, x)
		return err
	})
	if err != nil {
		storetest.Must(o.t, o.Changes.Commit.InTx(o.t.Context(), func(ctx context.Context) error {
			return action.Refused(ctx, x, err)
		}))
	}
	return result, err
}

// A complete challenge carries the request out, if the approver may still approve.
func TestApproval(t *testing.T) {
	o := newOffice(t)
	id := o.stand()
	_, err := o.execute(id, "other")
	storetest.Wants(t, err, fault.Forbidden)
	permit := o.group.Permit
	o.group.Permit = func(ctx context.Context, who rest.Caller, key string) error {
		if key == "POST /admin/approvals/{id}/approve" {
			return fault.New(fault.Forbidden, "no permission to approve")
		}
		return permit(ctx, who, key)
	}
	_, err = o.execute(id, "boss")
	storetest.Wants(t, err, fault.Forbidden)
	o.group.Permit, o.lower = permit, "boss"
	storetest.Wants(t, storetest.Err(o.execute(id, "boss")), fault.Forbidden)
	o.lower = ""
	got := storetest.Value(o.execute(id, "boss"))(t)
	want := strings.NewReplacer(`"PENDING","decidedBy":null,"decidedAt":null,"reason":null,"result":null`,
		`"APPROVED","decidedBy":"boss","decidedAt":"2023-11-14T22:13:21.000Z","reason":null,"result":{"data":{"id":7}}`).
		Replace(pending(id))
	if !got.Success || string(got.Data) != "{"+want+"}" {
		t.Errorf("\n got %+v %s\nwant %s", got, got.Data, want)
	}
	o.Wants("GET ", "", 200, "[{"+want+"}]")

	failed := o.stand()
	o.refusal = fault.New(fault.InvalidState, "the balance is too small")
	storetest.Wants(t, storetest.Err(o.execute(failed, "boss")), fault.InvalidState)
	if _, answer := o.Call("GET ?status=FAILED", ""); !strings.Contains(answer, failed) ||
		!strings.Contains(answer, `"result":{"code":"INVALID_STATE","message":"the balance is too small"}`) {
		t.Error(answer)
	}
}

// The action reads what it is judged by before it runs, and describes the request in at most 300 characters.
func TestAction(t *testing.T) {
	o := newOffice(t)
	action := o.group.Action()
	if action.Code != foureyes.ActionApprove || action.Flow != challenge.FlowSession {
		t.Errorf("%+v", action)
	}
	stale := errors.New("the feed cannot be read")
	o.group.Fresh = func(context.Context) error { return stale }
	if _, err := o.group.Action().Prepare(t.Context(), challenge.Execution{}); !errors.Is(err, stale) {
		t.Errorf("prepared with stale permissions: %v", err)
	}
	for _, n := range []int{0, 300, 301} {
		command := storetest.Value(json.Marshal(map[string]string{"summary": strings.Repeat("ü", n)}))(t)
		storetest.Equal(t, len([]rune(action.Describe(command)[0].Value)), min(n, 300), "of", n, "characters")
	}
	broken := challenge.Execution{Command: []byte("{")}
	_, failed := action.Exec(t.Context(), broken)
	if failed == nil || action.Refused(t.Context(), broken, failed) == nil || action.Describe(broken.Command) != nil {
		t.Error("a command that is no JSON was read")
	}
}

// A result that cannot be opened is an error, never an empty result.
func TestUnreadableResult(t *testing.T) {
	o := newOffice(t)
	id := o.stand()
	storetest.Must(t, storetest.Err(o.execute(id, "boss")))
	o.Open = func([]byte, []byte) ([]byte, error) { return nil, errors.New("no key") }
	for _, line := range []string{"GET /" + id, "GET "} {
		o.As("boss").Wants(line, "", 500, "INTERNAL")
	}
}
