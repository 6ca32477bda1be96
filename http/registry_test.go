package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	httpapi "castellan/http"
)

// The registry holds the endpoint table, and the types of its methods.
func TestRegistryIsFilledFromTheTable(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		// REQ-RES-02, 07, D-RES-06
		var types string
		for _, x := range s.list("GET /resource/resource-types") {
			types += fmt.Sprintf("%v %v %v %v %v %v %v\n", x["resourceContext"], x["code"], x["name"], x["status"],
				x["allResourceActions"], x["cuserid"], x["uuserid"])
		}
		if want := "API GET GET 1 <nil> system system\nAPI POST POST 1 <nil> system system\n" +
			"API PATCH PATCH 1 <nil> system system\nAPI DELETE DELETE 1 <nil> system system\n"; types != want {
			t.Errorf("types\n%s", types)
		}
		// REQ-RES-01, 04
		have := map[string]string{}
		for _, x := range s.list("GET /resource/resources?resourceContext=API") {
			have[x["resourceCode"].(string)] = fmt.Sprint(x["resourceTypeCode"], " ", x["resourceName"], " ", x["subResources"])
		}
		for _, e := range httpapi.Table() {
			storetest.Equal(t, have[e.Code()], e.Method+" "+e.Name+" <nil>", e.Code())
		}
		if len(have) != len(httpapi.Table()) || have["GET /2fa"] == "" {
			t.Errorf("%d resources for %d lines", len(have), len(httpapi.Table()))
		}
		s.wants("GET /resource/resources?resourceContext=UI", "", 200, `[]`)
	})
}

func TestTypes(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		// REQ-RES-08, 10, D-RES-06, 07
		page := s.made("POST /resource/resource-type",
			`{"name":"Page","code":"page","status":1,"resourceContext":"UI","allResourceActions":{"b":1,"a":[null,"x"]}}`)
		s.made("POST /resource/resource-type",
			`{"name":"Get","code":"GET","status":"0","resourceContext":"UI"}`) // GET is of API
		s.wants("POST /resource/resource-type", `{"name":"x","code":"page","status":1,"resourceContext":"UI"}`, 409,
			"RECORD_ALREADY_EXIST")
		shown := func(id int64) string {
			for _, x := range s.list("GET /resource/resource-types") {
				if x["id"] == float64(id) {
					return fmt.Sprintf("%v %v %v %v %v %v", x["name"], x["code"], x["status"], x["allResourceActions"],
						x["cuserid"] == s.users["root"], x["uuserid"] == s.users["root"])
				}
			}
			return "gone"
		}
		storetest.Equal(t, shown(page), "Page page 1 map[a:[<nil> x] b:1] true true", "listed as")
		// An update needs every required field again; what is optional stays when
		// it is not sent, and null clears it (D-RES-04, D-GEN-10).
		upd := func(rest string) string { return fmt.Sprintf(`{"resourceTypeId":%d%s}`, page, rest) }
		s.wants("POST /resource/resource-type", upd(`,"name":"P"`), 400, "INVALID_FIELD code status resourceContext")
		s.wants("POST /resource/resource-type", upd(`,"name":"P","code":"page","status":0,"resourceContext":"UI"`), 200,
			`{"id":<id>}`)
		storetest.Equal(t, shown(page), "P page 0 map[a:[<nil> x] b:1] true true", "listed as")
		s.wants("POST /resource/resource-type",
			upd(`,"name":"P","code":"page","status":0,"resourceContext":"UI","allResourceActions":null`), 200, `{"id":<id>}`)
		storetest.Equal(t, shown(page), "P page 0 <nil> true true", "listed as")
		s.wants("POST /resource/resource-type", upd(`,"name":"P","code":"GET","status":1,"resourceContext":"UI"`), 409,
			"RECORD_ALREADY_EXIST")
		s.wants("POST /resource/resource-type",
			`{"resourceTypeId":0,"name":"P","code":"q","status":1,"resourceContext":"UI"}`, 404, "RECORD_NOT_FOUND")
		// D-RES-03, D-AUTH-03: types in use and those of the table
		s.made("POST /resource/resource",
			fmt.Sprintf(`{"code":"/home","name":"Home","status":1,"resourceTypeId":%d,"resourceContext":"UI"}`, page))
		s.wants("DELETE /resource/resource-type", fmt.Sprintf(`{"resourceTypeId":%d}`, page), 409, "INVALID_STATE")
		s.wants("POST /resource/resource-type", upd(`,"name":"P","code":"page","status":1,"resourceContext":"API"`), 409,
			"INVALID_STATE")
		get := int64(s.list("GET /resource/resource-types")[0]["id"].(float64))
		for _, body := range []string{`"code":"GET","status":0,"resourceContext":"API"`,
			`"code":"FETCH","status":1,"resourceContext":"API"`, `"code":"GET","status":1,"resourceContext":"UI"`} {
			s.wants("POST /resource/resource-type", fmt.Sprintf(`{"resourceTypeId":%d,"name":"x",%s}`, get, body), 409,
				"INVALID_STATE")
		}
		s.wants("POST /resource/resource-type",
			fmt.Sprintf(`{"resourceTypeId":%d,"name":"Read","code":"GET","status":1,"resourceContext":"API"}`,
				get), 200, `{"id":<id>}`)
		s.wants("DELETE /resource/resource-type", fmt.Sprintf(`{"resourceTypeId":%d}`, get), 409, "INVALID_STATE")

		// REQ-RES-09, D-GEN-02
		free := s.made("POST /resource/resource-type", `{"name":"x","code":"x","status":1,"resourceContext":"UI"}`)
		s.wants(fmt.Sprintf("DELETE /resource/resource-type?resourceTypeId=%d", free), "", 200, `{"id":<id>}`)
		s.wants("DELETE /resource/resource-type", fmt.Sprintf(`{"resourceTypeId":"%d"}`, free), 404, "RECORD_NOT_FOUND")
	})
}

func TestResources(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		const one = "POST /resource/resource"
		page := s.made("POST /resource/resource-type", `{"name":"Page","code":"page","status":1,"resourceContext":"UI"}`)
		body := func(rest string) string {
			return fmt.Sprintf(`{"resourceTypeId":%d,"resourceContext":"UI",%s}`, page, rest)
		}
		// REQ-RES-05, D-RES-01, 02, 06
		top := s.made(one, body(`"code":"/home","name":"Home","status":1,"menuItemProperties":"text",`+
			`"allResourceActions":[1,{"a":null}]`))
		sub := s.made(one, body(fmt.Sprintf(`"code":"/home/a","name":"A","status":0,"parentResourceId":"%d"`, top)))
		leaf := s.made(one, body(fmt.Sprintf(
			`"code":"WIDGET w","name":"W","status":1,"parentResourceId":%d,"menuItemProperties":0`, sub)))
		const (
			tail = `"subResources":null,"allResourceActions":null,"menuItemProperties":`
			head = `"resourceTypeId":<id>,"resourceTypeCode":"page",`
			w    = `{"resourceId":<id>,"resourceCode":"WIDGET w","resourceName":"W",` + head + tail + `0}`
			a    = `{"resourceId":<id>,"resourceCode":"/home/a","resourceName":"A",` + head + `"subResources":[` + w +
				`],"allResourceActions":null,"menuItemProperties":null}`
		)
		home := func(nested string) string {
			return `{"resourceId":<id>,"resourceCode":"/home","resourceName":"Home",` + head + `"subResources":` + nested +
				`,"allResourceActions":[1,{"a":null}],"menuItemProperties":"text"}`
		}
		s.wants("GET /resource/resources", `{"resourceContext":"UI"}`, 200, "["+home("["+a+"]")+"]")
		// D-RES-01: with status and context on request.
		extra := func(record string, status int) string {
			return strings.TrimSuffix(record, "}") + fmt.Sprintf(`,"status":%d,"resourceContext":"UI"}`, status)
		}
		passive := extra(strings.Replace(a, w, extra(w, 1), 1), 0)
		s.wants("GET /resource/resources?resourceContext=UI&stored=true", "", 200,
			"["+extra(home("["+passive+"]"), 1)+"]")
		storetest.Equal(t, len(s.list("GET /resource/resources")), len(httpapi.Table())+1, "without a filter")

		// Fields that are not sent stay; null takes it out of its parent.
		upd := func(id int64, rest string) string { return body(fmt.Sprintf(`"resourceId":%d,%s`, id, rest)) }
		s.wants(one, upd(sub, `"code":"/home/a","name":"A","status":0`), 200, `{"id":<id>}`)
		s.wants("GET /resource/resources?resourceContext=UI", "", 200, "["+home("["+a+"]")+"]")
		s.wants(one, upd(sub, `"code":"/home/a","name":"A","status":0,"parentResourceId":null`), 200, `{"id":<id>}`)
		s.wants("GET /resource/resources?resourceContext=UI", "", 200, "["+home("null")+","+a+"]")
		s.wants(one, upd(top, `"code":"/home","name":"Home","status":1,"menuItemProperties":null`), 200, `{"id":<id>}`)

		// D-RES-04, 07
		api := s.registered("GET /admin/roles")
		get := int64(s.list("GET /resource/resource-types")[0]["id"].(float64))
		for _, c := range []struct {
			body, want string
			status     int
		}{
			{body(`"code":"/home","name":"x","status":1`), "RECORD_ALREADY_EXIST", 409},
			{upd(sub, `"code":"/home","name":"x","status":1`), "RECORD_ALREADY_EXIST", 409},
			{upd(leaf+1000, `"code":"/new","name":"x","status":1`), "RECORD_NOT_FOUND", 404},
			{`{"code":"/new","name":"x","status":1,"resourceTypeId":999999,"resourceContext":"UI"}`,
				"INVALID_FIELD resourceTypeId", 400},
			{fmt.Sprintf(`{"code":"/new","name":"x","status":1,"resourceTypeId":%d,"resourceContext":"UI"}`, get),
				"INVALID_FIELD resourceContext", 400},
			{body(`"code":"/new","name":"x","status":1,"parentResourceId":999999`), "INVALID_FIELD parentResourceId", 400},
			{body(fmt.Sprintf(`"code":"/new","name":"x","status":1,"parentResourceId":%d`, api)),
				"INVALID_FIELD parentResourceId", 400},
			{upd(sub, fmt.Sprintf(`"code":"/home/a","name":"A","status":0,"parentResourceId":%d`, sub)),
				"INVALID_FIELD parentResourceId", 400},
			{upd(sub, fmt.Sprintf(`"code":"/home/a","name":"A","status":0,"parentResourceId":%d`, leaf)),
				"INVALID_FIELD parentResourceId", 400},
			{fmt.Sprintf(`{"resourceId":%d,"code":"/home/a","name":"A","status":0,"resourceTypeId":%d,"resourceContext":"API"}`,
				sub, get), "INVALID_STATE", 409},
		} {
			s.wants(one, c.body, c.status, c.want)
		}
		s.made(one, fmt.Sprintf(`{"code":"/home","name":"any shape","status":1,"resourceTypeId":%d,"resourceContext":"API"}`,
			get))

		// Lines of the table (D-AUTH-03)
		line := func(rest string) string { return fmt.Sprintf(`{"resourceId":%d,"name":"Mine",%s}`, api, rest) }
		post := int64(s.list("GET /resource/resource-types")[1]["id"].(float64))
		s.wants(one, line(fmt.Sprintf(`"code":"GET /admin/roles","status":0,"resourceTypeId":%d,"resourceContext":"API"`,
			get)), 409, "INVALID_STATE")
		s.wants(one, line(fmt.Sprintf(`"code":"GET /x","status":1,"resourceTypeId":%d,"resourceContext":"API"`, get)), 409,
			"INVALID_STATE")
		s.wants(one, line(fmt.Sprintf(`"code":"GET /admin/roles","status":1,"resourceTypeId":%d,"resourceContext":"API"`,
			post)), 409, "INVALID_STATE")
		s.wants(one, line(fmt.Sprintf(`"code":"GET /admin/roles","status":1,"resourceTypeId":%d,"resourceContext":"API"`,
			get)), 200, `{"id":<id>}`)
		s.wants("DELETE /resource/resource", fmt.Sprintf(`{"resourceId":%d}`, api), 409, "INVALID_STATE")
		s.wants("DELETE /resource/resource", fmt.Sprintf(`{"resourceId":%d}`, s.registered("GET /2fa")), 409, "INVALID_STATE")

		// REQ-RES-06, D-RES-03, D-GEN-02
		s.wants("DELETE /resource/resource", fmt.Sprintf(`{"resourceId":%d}`, sub), 409, "INVALID_STATE")
		s.wants("DELETE /resource/resource", fmt.Sprintf(`{"resourceId":"%d"}`, leaf), 200, `{"id":<id>}`)
		s.wants(fmt.Sprintf("DELETE /resource/resource?resourceId=%d", sub), "", 200, `{"id":<id>}`)
		s.wants("DELETE /resource/resource", fmt.Sprintf(`{"resourceId":%d}`, leaf), 404, "RECORD_NOT_FOUND")
	})
}

// Deleting a resource deletes the grants on it, each with its line in the log
// (D-RES-05).
func TestRemovingAResourceRevokes(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		typ := s.made("POST /resource/resource-type", `{"name":"Page","code":"page","status":1,"resourceContext":"UI"}`)
		page := s.made("POST /resource/resource",
			fmt.Sprintf(`{"code":"/p","name":"P","status":1,"resourceTypeId":%d,"resourceContext":"UI"}`, typ))
		role := s.made("POST /admin/roles", `{"code":"r","name":"R"}`)
		s.made("POST /admin/role-resource-permission", fmt.Sprintf(`{"roleId":%d,"resourceId":%d,"permission":"ALLOW"}`, role,
			page))
		s.wants("DELETE /resource/resource", fmt.Sprintf(`{"resourceId":%d}`, page), 200, `{"id":<id>}`)
		s.wants("GET /admin/role-resource-permission", "", 200, `[]`)
		s.wants(fmt.Sprintf("GET /admin/role-resource-permission-log?resourceId=%d", page), "", 200,
			`[{"id":"<id>","roleId":"<id>","resourceId":"<id>","permission":"REVOKE","createdAt":"<time>"},`+
				`{"id":"<id>","roleId":"<id>","resourceId":"<id>","permission":"ALLOW","createdAt":"<time>"}]`)
		s.wants("DELETE /admin/roles", `{"code":"r"}`, 200, `{"data":{"id":<id>,"code":"r","name":"R","createdAt":"<time>"}}`)
	})
}
