package kit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpparameter "castellan/http/kit/parameter"
	"castellan/http/rest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

type service struct {
	*apitest.Site
	db    *persistence.DB
	store parameter.Store
	live  *parameter.Cache
}

func parameterBoth(t *testing.T, test func(t *testing.T, s service)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		store := kit.NewParameters(db)
		storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error { return parameter.Seed(ctx, store) }))
		_, err := store.Add(t.Context(), parameter.Parameter{Code: "FIXED", Name: "n", JSON: json.RawMessage(`{}`)})
		storetest.Must(t, err)
		_, err = store.Add(t.Context(), parameter.Parameter{Code: "FREE", Name: "n", JSON: json.RawMessage(`{}`),
			Editable: true})
		storetest.Must(t, err)
		live := parameter.NewCache(store)
		storetest.Must(t, live.Reload(t.Context()))
		site := apitest.Serve(t, edge.Options{Verify: verify},
			httpparameter.Group{Service: &parameter.Service{Store: store,
				Changes: admin.Changes{Commit: db, Now: time.Now, Topic: change.Parameters, Follow: live.Follow}}})
		test(t, service{site.Below("/admin/"), db, store, live})
	})
}

// verify stands for the authenticator, whose own tests are those of domain/proof/totp.
func verify(_ context.Context, who rest.Caller, _ *rest.Endpoint, _ any) error {
	switch who.OTP {
	case "123456":
		return nil
	case "":
		return fault.New(fault.OTPRequired, "a code is needed")
	}
	return fault.New(fault.OTPInvalid, "wrong code")
}

func (s service) id(t *testing.T, code string) int64 {
	t.Helper()
	all := storetest.Value(s.store.List(t.Context(), parameter.Query{Code: &code}))(t)
	return all[0].ID
}

// update sends an update with a right code and summarizes the answer.
func (s service) update(body string) string {
	status, answer := s.Call("POST update-parameters", body, "otp", "123456")
	if status == 200 {
		return "200"
	}
	return fmt.Sprint(status, " ", apitest.Refusal(answer))
}

// REQ-ADM-02, REQ-ADM-03, D-ADM-02: the shapes, to the last key; the change holds
// on this node before the answer.
func TestParameters(t *testing.T) {
	parameterBoth(t, func(t *testing.T, s service) {
		id := s.id(t, "CDN")
		status, list := s.Call("GET get-parameters?code=CDN", "")
		var all []map[string]any
		storetest.Must(t, json.Unmarshal([]byte(list), &all))
		if status != 200 || len(all) != 1 || len(all[0]) != 7 || all[0]["name"] != "Folders of the CDN" ||
			all[0]["isEditable"] != true {
			t.Errorf("%d %s", status, list)
		}
		status, answer := s.Call("POST update-parameters", fmt.Sprintf(
			`{"id":"%d","json":{ "folderTypes" : ["x"],"note":"kept"},"code":"NO","isEditable":false,"updatedAt":1}`, id),
			"otp", "123456")
		var changed struct{ Data map[string]any }
		storetest.Must(t, json.Unmarshal([]byte(answer), &changed))
		if status != 200 || !strings.Contains(answer, `"json":{"folderTypes":["x"],"note":"kept"},"isEditable":true`) ||
			changed.Data["createdAt"] != all[0]["createdAt"] || changed.Data["updatedAt"] == all[0]["updatedAt"] {
			t.Errorf("%d %s", status, answer)
		}
		storetest.Same(t, parameter.CDN.In(s.live.Set()).FolderTypes, []string{"x"})

		// The version that was read is the present one only once.
		version := func(stamp any) string {
			return s.update(fmt.Sprintf(`{"id":%d,"json":{"folderTypes":["y"]},"ifUpdatedAt":%q}`, id, stamp))
		}
		if a, b := version(all[0]["updatedAt"]), version(changed.Data["updatedAt"]); a != "409 INVALID_STATE" || b != "200" {
			t.Errorf("the version before: %s; the present one: %s", a, b)
		}

		for query, want := range map[string]int{"": 16, "?isEditable=true": 15, "?isEditable=0": 1, "?code=FIXED": 1,
			"?code=cdn": 0, "?id=999": 0, fmt.Sprintf("?id=%d&isEditable=true", id): 1} {
			_, list := s.Call("GET get-parameters"+query, "")
			storetest.Must(t, json.Unmarshal([]byte(list), &all))
			storetest.Equal(t, len(all), want, query, "parameters")
		}
	})
}

func TestRefusals(t *testing.T) {
	parameterBoth(t, func(t *testing.T, s service) {
		free, cdn := s.id(t, "FREE"), s.id(t, "CDN")
		const wrong = "400 INVALID_FIELD json"
		for _, c := range []struct{ body, want string }{
			{`{"id":999,"json":[]}`, wrong}, // the form comes before the existence (D-GEN-19)
			{`{"id":999,"json":{}}`, "404 RECORD_NOT_FOUND"},
			{fmt.Sprintf(`{"id":%d,"json":{"a":1}}`, s.id(t, "FIXED")), "409 INVALID_STATE"},
			{fmt.Sprintf(`{"id":%d,"json":{}}`, cdn), wrong},
			{fmt.Sprintf(`{"id":%d,"json":{"folderTypes":"x"}}`, cdn), wrong},
			{fmt.Sprintf(`{"id":%d,"json":{"folderTypes":["x"],"FolderTypes":["y"]}}`, cdn), wrong},
			{fmt.Sprintf(`{"id":%d,"json":{"ignoredUsers":null,"IgnoredUsers":["x"]}}`, s.id(t, "AMLCONTROL")), wrong},
			{fmt.Sprintf(`{"id":%d,"json":{"values":["a\u0000"]}}`, s.id(t, "USER_TYPE")), wrong + ".values[0]"},
			{fmt.Sprintf(`{"id":%d,"json":{"values":[1]}}`, s.id(t, "USER_TYPE")), wrong},
			{fmt.Sprintf(`{"id":%d,"json":{"BTC":"x"}}`, s.id(t, "TREASURY")), wrong},
			{fmt.Sprintf(`{"id":%d,"json":{"minLength":1.5}}`, s.id(t, "EXPLANATION")), wrong},
		} {
			storetest.Equal(t, s.update(c.body), c.want, c.body)
		}
		body := fmt.Sprintf(`{"id":%d,"json":{"a":"b"}}`, free)
		s.Wants("POST update-parameters", body, 403, "OTP_REQUIRED")
		if status, answer := s.Call("POST update-parameters", body, "otp", "1"); status != 422 {
			t.Errorf("a wrong code: %d %s", status, answer)
		}
		for _, object := range []string{`{"ignoredUsers":["admin"]}`, `{"ignoredUsers":["admin"],"IgnoredUsers":[]}`,
			`{"IGNOREDUSERS":["admin"]}`} {
			s.Wants("POST update-parameters", fmt.Sprintf(`{"id":%d,"json":%s}`, s.id(t, "AMLCONTROL"), object), 403,
				"FORBIDDEN")
			s.As("clerk").Wants("POST update-parameters", fmt.Sprintf(`{"id":%d,"json":%s}`, free, object), 403,
				"OTP_REQUIRED")
		}
		if rows, err := kit.NewAudit(s.db).Verify(t.Context(), []byte(persistencetest.AuditKey)); rows != 0 || err != nil {
			t.Errorf("%d rows of refusals in the audit, %v", rows, err)
		}
	})
}
