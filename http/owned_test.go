package httpapi_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"castellan/http/rest"
)

// serverOwned is sent for everything that the server fills in (SEC-26).
const serverOwned = "SENT-BY-THE-CLIENT"

var owned = []string{
	"createdAt", "updatedAt", "created_at", "updated_at", "cdate", "udate", "cuserid", "uuserid", "createdBy", "updatedBy",
	"createDateTimeStamp", "updateDateTimeStamp", "requestor_userid", "approver_rejection_userid", "actorId", "userId",
	"roles", "isAdmin", "tenantId", "version", "balance", "locked", "slug", "hash", "path", "status_code",
}

// withOwned adds to a body what the server owns: fields of the answer and others that
// are no fields of the request.
func withOwned(e rest.Endpoint, request string) string {
	if e.Method == "GET" || request == "" || e.WantsBodyHash {
		return request
	}
	mine := map[string]bool{}
	for _, f := range e.Fields() {
		mine[f.Name], mine[f.Alias] = true, true
	}
	names := slices.Clone(owned)
	if e.Out != nil {
		names = append(names, answered(e.Out, nil)...)
	}
	var extra string
	for _, name := range names {
		if !mine[name] {
			mine[name] = true
			extra += fmt.Sprintf(",%q:%q", name, serverOwned)
		}
	}
	return strings.TrimSuffix(request, "}") + extra + "}"
}

// answered are the names of the fields of an answer.
func answered(t reflect.Type, above []reflect.Type) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(above, t) {
		return nil
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" && name != "data" {
			names = append(names, name)
		}
		names = append(names, answered(t.Field(i).Type, append(above, t))...)
	}
	return names
}
