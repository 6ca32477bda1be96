package staffrequest_test

import (
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/office/staffrequest"
)

func deploy() staffrequest.Deploy {
	return staffrequest.Deploy{Request: staffrequest.Request{Status: staffrequest.Pending, Type: "t", DeciderID: "x"},
		ServiceName: "s", OriginalServiceName: "o", BuildNumber: "b", Minutes: 10}
}

// Texts and durations are bounded.
func TestBoundsOfRequests(t *testing.T) {
	long := strings.Repeat("é", 200)
	for name, c := range map[string]struct {
		change func(*staffrequest.Deploy)
		fields string
	}{
		"longest texts": {func(d *staffrequest.Deploy) {
			d.ServiceName, d.OriginalServiceName, d.BuildNumber, d.Type = long, long, long, long
			d.Comment = strings.Repeat("é", 2000)
		}, ""},
		"long texts": {func(d *staffrequest.Deploy) {
			d.ServiceName, d.OriginalServiceName, d.BuildNumber, d.Type = long+"x", long+"x", long+"x", long+"x"
			d.Comment = strings.Repeat("é", 2001)
		}, "service_name original_service_name build_number type comment"},
		"shortest": {func(d *staffrequest.Deploy) { d.Minutes = 1 }, ""},
		"nothing":  {func(d *staffrequest.Deploy) { d.Minutes, d.ServiceName = 0, " " }, "service_name duration_minutes"},
		"control":  {func(d *staffrequest.Deploy) { d.BuildNumber = "a\x00" }, "build_number"},
		"approved": {func(d *staffrequest.Deploy) { d.Status = staffrequest.Approved }, ""},
		"rejected": {func(d *staffrequest.Deploy) { d.Status = staffrequest.Rejected }, ""},
		"another":  {func(d *staffrequest.Deploy) { d.Status = "DONE" }, "status"},
		"a year":   {func(d *staffrequest.Deploy) { d.Minutes = 525_600 }, ""},
		"too long": {func(d *staffrequest.Deploy) { d.Minutes = 525_601 }, "duration_minutes"},
	} {
		d := deploy()
		c.change(&d)
		if storetest.WantsFields(t, d.Check(), c.fields); t.Failed() {
			t.Fatal(name)
		}
	}
}
