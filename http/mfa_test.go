package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

const seededMethods = `{"methodCode":"SMS","expireMs":120000,"renewStartMs":60000},{"methodCode":"MAIL",` +
	`"expireMs":120000,"renewStartMs":60000},` +
	`{"methodCode":"PUSH","expireMs":120000,"renewStartMs":0},{"methodCode":"TOTP","expireMs":0,"renewStartMs":0}`

func TestMethods(t *testing.T) {
	mfaBoth(t, func(t *testing.T, s *mfaSite) {
		// REQ-MFA-07, D-MFA-10, D-MFA-11
		s.Wants("GET methods", "", 200, "["+seededMethods+"]")
		s.Wants("GET methods?methodCode=TOTP", "", 200, `[{"methodCode":"TOTP","expireMs":0,"renewStartMs":0}]`)
		s.Wants("GET methods", `{"methodCode":"TOTP"}`, 200, `[{"methodCode":"TOTP","expireMs":0,"renewStartMs":0}]`)
		s.Wants("GET methods?methodCode=PUSH_OTP", "", 200, `[]`)
		s.Wants("GET methods?methodCode=", "", 400, "INVALID_FIELD methodCode")
		s.Wants("GET methods?methodCode=sms", "", 400, "INVALID_FIELD methodCode")

		// REQ-MFA-08, D-MFA-07, D-GEN-21
		s.Wants("POST methods", `{"methodCode":"PUSH_OTP","expireMs":90000,"renewStartMs":0}`, 200,
			`{"methodCode":"PUSH_OTP"}`)
		s.Wants("POST methods", `{"methodCode":"PUSH_OTP","expireMs":90000,"renewStartMs":0}`, 409, "RECORD_ALREADY_EXIST")
		s.Wants("POST methods", `{"methodCode":"SMS","expireMs":120000,"renewStartMs":60000}`, 409,
			"RECORD_ALREADY_EXIST")
		s.Wants("POST methods", `{"methodCode":"FAX","expireMs":"10000","renewStartMs":"0"}`, 200, `{"methodCode":"FAX"}`)
		s.Wants("POST methods", `{"methodCode":"A1","expireMs":120,"renewStartMs":60}`, 400, // D-MFA-13
			"INVALID_FIELD expireMs")
		s.Wants("POST methods", `{"methodCode":"A1","expireMs":20000,"renewStartMs":20001}`, 400,
			"INVALID_FIELD renewStartMs")

		// REQ-MFA-09, D-MFA-01, D-2FA-03, D-2FA-04, D-GEN-03
		s.Wants("PATCH methods", `{"methodCode":"SMS","expireMs":600000}`, 200, `{}`)
		s.Wants("PATCH methods", `{"methodCode":"SMS","expireMs":600001}`, 400, "INVALID_FIELD expireMs")
		s.Wants("PATCH methods", `{"methodCode":"MAIL","expireMs":600001}`, 400, "INVALID_FIELD expireMs")
		s.Wants("PATCH methods", `{"methodCode":"MAIL","expireMs":0,"renewStartMs":60000}`, 200, `{}`)
		s.Wants("PATCH methods", `{"methodCode":"SMS","expireMs":59999}`, 400, "INVALID_FIELD renewStartMs")
		s.Wants("PATCH methods", `{"methodCode":"MAIL","renewStartMs":600001}`, 400, "INVALID_FIELD renewStartMs")
		s.Wants("PATCH methods", `{"methodCode":"PUSH","expireMs":600001,"renewStartMs":null}`, 200, `{}`)
		s.Wants("PATCH methods", `{"methodCode":"TOTP","expireMs":0}`, 400, "INVALID_FIELD")
		s.Wants("PATCH methods", `{"methodCode":"TOTP"}`, 400, "INVALID_FIELD")
		s.Wants("PATCH methods", `{"methodCode":"TOTP","expireMs":null,"unknown":1}`, 400, "INVALID_FIELD")
		s.Wants("PATCH methods", `{"methodCode":"NONE","expireMs":10000}`, 404, "RECORD_NOT_FOUND")
		s.Wants("PATCH methods", `{"methodCode":"NONE","expireMs":-1}`, 400, "INVALID_FIELD expireMs")
		s.Wants("GET "+
			"methods", "", 200, `[{"methodCode":"SMS","expireMs":600000,"renewStartMs":60000},{"methodCode":"MAIL",`+
			`"expireMs":0,"renewStartMs":60000},`+
			`{"methodCode":"PUSH","expireMs":600001,"renewStartMs":0},{"methodCode":"TOTP","expireMs":0,`+
			`"renewStartMs":0},`+
			`{"methodCode":"PUSH_OTP","expireMs":90000,"renewStartMs":0},{"methodCode":"FAX","expireMs":10000,`+
			`"renewStartMs":0}]`)
		if _, answer := s.Call("PATCH methods", `{"methodCode":"TOTP","expireMs":0}`); !strings.Contains(answer,
			`"detail":"nothing to change"`) {
			t.Errorf("got %s", answer)
		}
	})
}

func TestActions(t *testing.T) {
	mfaBoth(t, func(t *testing.T, s *mfaSite) {
		// REQ-MFA-10, D-MFA-10, D-MFA-11
		status, answer := s.Call("GET actions", "")
		var list []struct {
			ActionCode              string
			Title, InfoTableHeaders map[string]any
		}
		storetest.Must(t, json.Unmarshal([]byte(answer), &list))
		var codes []string
		for _, a := range list {
			codes = append(codes, a.ActionCode)
			if len(a.Title) != 3 || a.InfoTableHeaders == nil {
				t.Errorf("%+v", a)
			}
		}
		if want := "[LOGIN RESET_PASSWORD UPDATE_PASSWORD TOTP_SETUP TOTP_DEACTIVATE GEOFILTER_ADD GEOFILTER_REMOVE " +
			"DURING_VIDEO_KYC VERIFY_EMAIL]"; status != 200 || fmt.Sprint(codes) != want {
			t.Errorf("%d %v", status, codes)
		}
		s.Wants("GET actions?actionCode=NONE", "", 200, `[]`)
		s.Wants("GET actions?actionCode=", "", 400, "INVALID_FIELD actionCode")
		s.Wants("GET actions?actionCode=log-in", "", 400, "INVALID_FIELD actionCode")

		// REQ-MFA-11, D-MFA-05, D-MFA-07, D-MFA-12
		s.Wants("POST "+
			"actions", `{"actionCode":"A1","title":{"en":"One","tr":"Bir"},"infoTableHeaders":{"z":{"en":"Z"},`+
			`"a":{"tr":"A"},"1":{"ar":"ا"}}}`, 200, `{"actionCode":"A1"}`)
		s.Wants("GET actions?actionCode=A1", "", 200,
			`[{"actionCode":"A1","title":{"tr":"Bir","en":"One"},"infoTableHeaders":{"z":{"en":"Z"},"a":{"tr":"A"},`+
				`"1":{"ar":"ا"}}}]`)
		s.Wants("POST actions", `{"actionCode":"A2","title":"{\"ar\":\"اثنان\"}","infoTableHeaders":"{}"}`, 200,
			`{"actionCode":"A2"}`)
		s.Wants("GET actions", `{"actionCode":"A2"}`, 200,
			`[{"actionCode":"A2","title":{"ar":"اثنان"},"infoTableHeaders":{},"service":true}]`)
		s.Wants("POST actions", `{"actionCode":"A1","title":{"en":"x"},"infoTableHeaders":{}}`, 409,
			"RECORD_ALREADY_EXIST")
		s.Wants("POST actions", `{"actionCode":"DEVICE_ADD","title":{"en":"x"},"infoTableHeaders":{}}`, 200,
			`{"actionCode":"DEVICE_ADD"}`)
		s.Wants("POST actions", `{"actionCode":"a","title":{},"infoTableHeaders":{"k":{}}}`, 400,
			"INVALID_FIELD actionCode title infoTableHeaders")
		s.Wants("POST actions", `{"actionCode":"a","title":{"de":"x"},"infoTableHeaders":{"k":5}}`, 400,
			"INVALID_FIELD title infoTableHeaders actionCode")
		for _, title := range []string{`{}`, `{"en":5}`, `{"en":null}`, `{"en":" "}`, `{"en":"x","de":"y"}`, `[]`,
			`"x"`, `7`, `"{\"en\":\"a\",\"en\":\"b\"}"`, `{"en":"a\u0007"}`} {
			s.Wants("POST actions", `{"actionCode":"A3","title":`+title+`,"infoTableHeaders":{}}`, 400,
				"INVALID_FIELD title")
		}
		for _, headers := range []string{`{"k":"x"}`, `{"k":{}}`, `{"k":{"de":"x"}}`, `{"k":null}`, `{"":{"en":"x"}}`,
			`[]`, `"[]"`, `"x"`} {
			s.Wants("POST actions", `{"actionCode":"A3","title":{"en":"x"},"infoTableHeaders":`+headers+`}`, 400,
				"INVALID_FIELD infoTableHeaders")
		}

		// REQ-MFA-12, D-MFA-01
		s.Wants("PATCH actions", `{"actionCode":"A1","title":{"en":"Uno"}}`, 200, `{}`)
		// the order alone
		s.Wants("PATCH "+
			"actions", `{"actionCode":"A1","infoTableHeaders":{"a":{"tr":"A"},"z":{"en":"Z"},"1":{"ar":"ا"}}}`, 200,
			`{}`)
		s.Wants("GET actions?actionCode=A1", "", 200,
			`[{"actionCode":"A1","title":{"en":"Uno"},"infoTableHeaders":{"a":{"tr":"A"},"z":{"en":"Z"},`+
				`"1":{"ar":"ا"}}}]`)
		s.Wants("PATCH actions", `{"actionCode":"A1","title":{"en":"Uno"}}`, 400, "INVALID_FIELD")
		s.Wants("PATCH actions", `{"actionCode":"A1","title":{"en":"Uno"},"infoTableHeaders":{}}`, 200, `{}`)
		s.Wants("PATCH actions", `{"actionCode":"A1"}`, 400, "INVALID_FIELD")
		s.Wants("PATCH actions", `{"actionCode":"NONE","title":{"en":"x"}}`, 404, "RECORD_NOT_FOUND")
		s.Wants("PATCH actions", `{"actionCode":"NONE","title":{"de":"x"}}`, 400, "INVALID_FIELD title")
		s.Wants("PATCH actions", `{"actionCode":"NONE","infoTableHeaders":[]}`, 400, "INVALID_FIELD infoTableHeaders")
		storetest.Equal(t, s.live.Catalog().ActionTitle("A1", "tr"), "Uno", "title")
	})
}

func TestPolicies(t *testing.T) {
	mfaBoth(t, func(t *testing.T, s *mfaSite) {
		s.Wants("GET policies", "", 200, `[]`) // no policy is seeded, so the first one can be added

		// REQ-MFA-14, 17, 18: the interface's own example omits preffered
		id := s.add(`{"actionCode":"LOGIN","name":"Login","expireAt":0,"required":1,"methods":[["SMS","login-sms"],` +
			`["TOTP"]]}`)
		s.Wants("GET policies", "", 200, fmt.Sprintf(
			`[{"id":%d,"actionCode":"LOGIN","name":"Login","entityType":"GENERAL","expireAt":0,"type":"COMMON",`+
				`"detail":{"methods":[["SMS","login-sms"],["TOTP"]],"required":1,"preffered":1}}]`, id))

		// REQ-MFA-16, D-MFA-02, D-MFA-08
		s.Wants("POST "+
			"policies/common", `{"actionCode":"LOGIN","name":"x","expireAt":0,"required":1,"methods":[["SMS"]]}`, 409,
			"RECORD_ALREADY_EXIST")
		s.Wants("POST "+
			"policies/common", `{"actionCode":"LOGIN","entityType":"USER_ID","name":"x","expireAt":0,"required":1,`+
			`"methods":[["SMS"]]}`, 409, "RECORD_ALREADY_EXIST")
		s.add(`{"actionCode":"TOTP_SETUP","entityType":"IP","name":"x","expireAt":1,"required":1,"methods":[["SMS"]]}`)
		s.Wants("POST "+
			"policies/common", `{"actionCode":"TOTP_SETUP","name":"x","expireAt":0,"required":1,"methods":[["SMS"]]}`,
			409, "RECORD_ALREADY_EXIST")

		// D-MFA-04, D-MFA-12, D-GEN-06, D-GEN-07: the accepted values, in normal form
		for i, c := range []struct{ methods, normal string }{
			{`[["TOTP",null],["SMS",""],["MAIL","m"],["PUSH"]]`, `[["TOTP"],["SMS"],["MAIL","m"],["PUSH"]]`},
			{`"[[\"TOTP\",\"\"],[\"SMS\",\"s\"]]"`, `[["TOTP"],["SMS","s"]]`},
		} {
			code := fmt.Sprintf("M%d", i)
			s.Wants("POST actions", `{"actionCode":"`+code+`","title":{"en":"x"},"infoTableHeaders":{}}`, 200,
				`{"actionCode":"`+code+`"}`)
			id := s.add(`{"actionCode":"` + code +
				`","name":"x","expireAt":"2030-01-01T00:00:00Z","required":"2","preferred":2,"methods":` + c.methods +
				`}`)
			storetest.Equal(t, s.policy(id), `x 1893456000000 `+c.normal+` 2 2`, "listed as")
			for _, at := range []struct{ sent, listed string }{{"8640000000000000", "8640000000000000"}, {"0e0", "0"},
				{`"8640000000000000"`, "8640000000000000"},
				{"253402300800000", "253402300800000"}, {"8.64E15", "8640000000000000"},
				{`"9999-12-31"`, "253402214400000"}} {
				s.Wants("PATCH policies/common", fmt.Sprintf(`{"id":%d,"expireAt":%s}`, id, at.sent), 200, "{}")
				storetest.Equal(t, s.policy(id), "x "+at.listed+" "+c.normal+" 2 2", at.sent, "is listed as")
			}
			s.Wants("PATCH policies/common", fmt.Sprintf(`{"id":%d,"expireAt":8640000000000001}`, id), 400,
				"INVALID_FIELD expireAt")
		}

		for _, c := range []struct{ body, want string }{
			{`{"actionCode":"UNKNOWN","name":"x","expireAt":0,"required":1,"methods":[["SMS"]]}`, "actionCode"},
			{`{"actionCode":"LOGIN","name":"x","expireAt":-1,"required":1,"methods":[["SMS"]]}`, "expireAt"},
			{`{"actionCode":"LOGIN","name":"x","expireAt":0,"required":2,"methods":[["SMS"]]}`, "required"},
			{`{"actionCode":"LOGIN","name":"x","expireAt":0,"required":1,"preffered":2,"methods":[["SMS"]]}`,
				"preffered"},
			{`{"actionCode":"LOGIN","name":"x","expireAt":0,"required":1,"preffered":1,"preferred":0,` +
				`"methods":[["SMS"]]}`, "preffered"},
			{`{"actionCode":"login","name":"","expireAt":0,"required":1,"methods":{}}`, "name"},
			{`{"actionCode":"login","name":"x\ny","expireAt":-5,"required":1,"methods":{}}`,
				"methods actionCode name expireAt"},
		} {
			s.Wants("POST policies/common", c.body, 400, "INVALID_FIELD "+c.want)
		}
		for _, methods := range []string{`[]`, `{}`, `"x"`, `[[]]`, `["SMS"]`, `[["SMS","a","b"]]`, `[[null]]`, `[[5]]`,
			`[["SMS",5]]`, `[["sms"]]`, `[["PIGEON"]]`,
			`[["SMS"],["SMS","t"]]`, `[["TOTP","t"]]`, `[null]`} {
			s.Wants("POST "+
				"policies/common", `{"actionCode":"VERIFY_EMAIL","name":"x","expireAt":0,"required":1,`+
				`"methods":`+methods+`}`, 400, "INVALID_FIELD methods")
		}

		// D-MFA-05: built-in actions without a row
		s.add(`{"actionCode":"DEVICE_ADD","name":"x","expireAt":0,"required":1,"preffered":0,"methods":[["SMS"]]}`)
	})
}

func TestChangePolicies(t *testing.T) {
	mfaBoth(t, func(t *testing.T, s *mfaSite) {
		id := s.add(`{"actionCode":"LOGIN","name":"n","expireAt":5,"required":1,"methods":[["SMS","t"],["TOTP"]]}`)
		stated := s.add(`{"actionCode":"TOTP_SETUP","name":"n","expireAt":5,"required":2,"preffered":2,` +
			`"methods":[["SMS"],["MAIL"]]}`)
		// REQ-MFA-15, D-MFA-01, D-MFA-03, D-MFA-04
		for _, c := range []struct {
			fields, refused string // of {"id":…}; refused "": 200
			listed          string
		}{
			{`,"name":"m"`, "", `m 5 [["SMS","t"],["TOTP"]] 1 1`},
			{`,"expireAt":"2030-01-01"`, "", `m 1893456000000 [["SMS","t"],["TOTP"]] 1 1`},
			{`,"expireAt":0,"name":null`, "", `m 0 [["SMS","t"],["TOTP"]] 1 1`},
			{`,"required":2`, "", `m 0 [["SMS","t"],["TOTP"]] 2 2`},
			{`,"required":3`, "INVALID_FIELD required", ""},
			{`,"methods":[["SMS"]]`, "INVALID_FIELD required", ""},
			{`,"methods":[["SMS"]],"required":1`, "", `m 0 [["SMS"]] 1 1`},
			{`,"preffered":2`, "INVALID_FIELD preffered", ""},
			{`,"preferred":0`, "", `m 0 [["SMS"]] 1 0`},
			{`,"preffered":0`, "INVALID_FIELD", ""},
			{`,"methods":"[[\"TOTP\",null],[\"MAIL\"]]"`, "", `m 0 [["TOTP"],["MAIL"]] 1 0`},
			{`,"methods":[["MAIL"],["TOTP"]]`, "", `m 0 [["MAIL"],["TOTP"]] 1 0`}, // the order is what is offered first
			{`,"methods":[["MAIL",""],["TOTP",""]]`, "INVALID_FIELD", ""},
			{`,"methods":[["PIGEON"]]`, "INVALID_FIELD methods", ""},
			{`,"methods":{}`, "INVALID_FIELD methods", ""},
			{`,"name":"m","expireAt":0,"required":1,"preffered":0,"methods":[["MAIL"],["TOTP"]]`, "INVALID_FIELD", ""},
			{``, "INVALID_FIELD", ""},
			{`,"entityType":"IP","actionCode":"VERIFY_EMAIL"`, "INVALID_FIELD", ""}, // unknown fields are no change
			{`,"name":" "`, "INVALID_FIELD name", ""},
			{`,"required":0`, "INVALID_FIELD required", ""},
		} {
			before := s.policy(id)
			body := fmt.Sprintf(`{"id":%d%s}`, id, c.fields)
			if c.refused != "" {
				s.Wants("PATCH policies/common", body, 400, c.refused)
				c.listed = before
			} else {
				s.Wants("PATCH policies/common", body, 200, `{}`)
			}
			storetest.Equal(t, s.policy(id), c.listed, body, "listed")
		}
		s.Wants("PATCH policies/common", fmt.Sprintf(`{"id":"%d","name":"of a string"}`, id), 200, `{}`)
		s.Wants("PATCH policies/common", fmt.Sprintf(`{"id":%d,"methods":[["SMS"]],"required":1}`, stated), 400,
			"INVALID_FIELD preffered")
		s.Wants("PATCH policies/common", fmt.Sprintf(`{"id":%d,"methods":[["SMS"]],"required":1,"preffered":1}`,
			stated), 200, `{}`)

		s.Wants("PATCH policies/common", `{"id":999999,"name":"x"}`, 404, "RECORD_NOT_FOUND")
		s.Wants("PATCH policies/common", `{"id":999999,"methods":[["PIGEON"]],"required":5}`, 404, "RECORD_NOT_FOUND")
		s.Wants("PATCH policies/common", `{"id":999999,"name":""}`, 400, "INVALID_FIELD name")
	})
}
