package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"

	"github.com/getkin/kin-openapi/openapi3"
)

type docRequest struct {
	ID     ID                `json:"id" doc:"which one"`
	Code   string            `json:"code" maxLength:"32" example:"ABC"`
	Status *string           `json:"status" enum:"ACTIVE,INACTIVE"`
	Limit  int               `json:"limit" default:"5" minimum:"1" maximum:"100"`
	Amount *Decimal          `json:"amount"`
	Paid   *amount.Amount    `json:"paid"`
	When   *Time             `json:"when"`
	Detail *JSON             `json:"detail"`
	Note   Nullable[string]  `json:"note"`
	Tree   *tree             `json:"tree"`
	Kinds  []string          `json:"kinds,omitempty" enum:"a,b" maxItems:"3"`
	Names  map[string]string `json:"names,omitempty"`
	To     Strings           `json:"to,omitempty"`
	Any    any               `json:"any,omitempty"`
	Pref   *bool             `json:"preffered" alias:"preferred"`
}

type docRecord struct {
	ID        int64           `json:"id,string"`
	Amount    Decimal         `json:"amount"`
	Paid      amount.Amount   `json:"paid"`
	CreatedAt Time            `json:"createdAt"`
	EndedAt   *Time           `json:"endedAt"`
	Hint      *string         `json:"hint,omitempty"`
	Raw       json.RawMessage `json:"raw"`
	Sub       *docSub         `json:"sub"`
	At        time.Time       `json:"at"`
	Picture   []byte          `json:"picture"`
	Tags      []string        `json:"tags"`
	Score     float64         `json:"score"`
	hidden    int
}

type docSub struct {
	Name string   `json:"name"`
	Subs []docSub `json:"subs"`
}

type docChallenge struct {
	Challenge struct {
		ID string `json:"challengeId"`
	} `json:"challenge"`
}

func documented() []Endpoint {
	_ = docRecord{}.hidden
	answers := func(context.Context, Caller, docRequest) ([]docRecord, error) { return nil, nil }
	return []Endpoint{
		Get("/things", "List", NoAuth, answers).Of("4.1 Things"),
		Post("/things", "Add", Tenant,
			func(context.Context, Caller, docRequest) (Data[docRecord], error) {
				return Data[docRecord]{}, nil
			}, fault.RecordAlreadyExist).
			Of("4.1 Things").Idempotent().Verified().IPFiltered(),
		Delete("/things", "Remove", TenantOrCron, func(context.Context, Caller, base) (None, error) {
			return None{}, nil
		}).Of("4.2 Other"),
		Get("/things/{id}", "One", User,
			func(context.Context, Caller, base) (Reply[docRecord], error) { return Reply[docRecord]{}, nil }),
		Patch("/things/{id}", "Change", User, func(context.Context, Caller, docRequest) (None, error) { return None{}, nil }),
		Get("/things/{id}/picture", "Picture", PAuthOrDevice,
			func(context.Context, Caller, base) (Reply[None], error) {
				return Reply[None]{}, nil
			}).Binary("image/png").Extended(),
		Start2FA("POST", "/start", "Start", NoAuth, "RESET_PASSWORD",
			func(context.Context, Caller, base) (base, error) { return base{}, nil }),
		Post("/answer", "Answer", OTAuth, nothing), Put("/put", "Put", Device, nothing), Get("/wait", "Wait", PAuth, nothing),
	}
}

// TestOpenAPI: the document is valid, says the same each time, and says what the
// binder does.
func TestOpenAPI(t *testing.T) {
	extra := Extra{Description: "d", ServerURL: "https://id.example.com", Challenge: reflect.TypeFor[docChallenge]()}
	text := storetest.Value(OpenAPI("Castellan", "1", documented(), extra))(t)
	for range 3 {
		if again, _ := OpenAPI("Castellan", "1", documented(), extra); !bytes.Equal(text, again) {
			t.Fatal("two renderings differ")
		}
	}
	doc := storetest.Value(openapi3.NewLoader().LoadFromData(text))(t)
	storetest.Must(t, doc.Validate(t.Context()))

	post := doc.Paths.Value("/things").Post
	body := post.RequestBody.Value.Content["application/json"].Schema.Value
	storetest.Equal(t, strings.Join(body.Required, ","), "id,code", "required")
	for name, want := range map[string]string{
		"code": `"maxLength":32`, "limit": `"default":5`, "status": `"enum":["ACTIVE","INACTIVE"]`, "note": `"null"`,
		"kinds":     `"maxItems":3`,
		"preferred": "preffered", "tree": "#/components/schemas/RestTreeInput", "id": "which one",
		"paid": "#/components/schemas/Amount",
	} {
		got, err := body.Properties[name].MarshalJSON()
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %s lacks %s", name, got, want)
		}
	}
	record := doc.Components.Schemas["DocRecord"].Value
	if got := strings.Join(record.Required, ","); got != "id,amount,paid,createdAt,endedAt,raw,sub,at,picture,tags,score" {
		t.Errorf("record requires %q", got)
	}
	if !record.Properties["paid"].Value.Type.Is("number") {
		t.Error("an amount is answered as a number")
	}
	if record.Properties["hidden"] != nil || !record.Properties["endedAt"].Value.Type.Includes("null") ||
		record.Properties["hint"].Value.Type.Includes("null") {
		t.Error("nullable and optional fields are confused")
	}
	codes := func(op *openapi3.Operation, status string) string {
		codes, _ := op.Extensions["x-codes"].(map[string]any)
		return strings.Trim(fmt.Sprint(codes[status]), "[]")
	}
	storetest.Equal(t, codes(post, "409"), "IDEMPOTENCY_CONFLICT RECORD_ALREADY_EXIST", "409")
	if got := codes(post, "403"); got != "ACCESS_DENIED FORBIDDEN GEO_BLOCKED IP_NOT_ALLOWED "+
		"OTP_REQUIRED TENANT_MISMATCH" {
		t.Errorf("403: %s", got)
	}
	if r := post.Responses; r.Value("409").Ref != "#/components/responses/Conflict" || r.Value("403") != nil ||
		r.Default().Ref != "#/components/responses/Refusal" || doc.Paths.Value("/things").Get.Responses.Value("409") != nil {
		t.Error("a status of own codes, and the default for all others")
	}
	if sec := *post.Security; len(sec) != 1 || sec[0]["x-auth"] == nil {
		t.Errorf("security %v", sec)
	}
	if sec := *doc.Paths.Value("/things").Get.Security; len(sec) != 0 {
		t.Errorf("public endpoint asks for %v", sec)
	}
	if sec := *doc.Paths.Value("/things").Delete.Security; len(sec) != 2 {
		t.Errorf("either credential: %v", sec)
	}
	get := doc.Paths.Value("/things").Get
	if p := get.Parameters.GetByInAndName("query", "code"); p == nil || !p.Required || get.RequestBody != nil {
		t.Error("a GET's fields are query parameters")
	}
	one := doc.Paths.Value("/things/{id}")
	if p := one.Patch.Parameters.GetByInAndName("path", "id"); p == nil {
		t.Error("no path parameter")
	}
	if s := one.Patch.RequestBody.Value.Content["application/json"].Schema.Value; s.Properties["id"] != nil ||
		strings.Join(s.Required, ",") != "code" {
		t.Errorf("a path parameter is in the body too: %v", s.Required)
	}
	start := doc.Paths.Value("/start").Post.Responses.Value("200").Value
	if start.Headers["p-auth"] == nil || start.Content["application/json"].Schema.Value.Properties["challenge"] == nil {
		t.Error("a starter's answer")
	}
	if doc.Paths.Value("/things/{id}/picture").Get.Responses.Value("200").Value.Content["image/png"] == nil {
		t.Error("a binary answer")
	}
	if _, err := OpenAPI("x", "1", append(documented(), documented()[0])); err == nil {
		t.Error("an endpoint twice")
	}
}
