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
		"blank text": {func(d *staffrequest.Deploy) { d.ServiceName = " " }, "service_name"},
		"shortest":   {func(d *staffrequest.Deploy) { d.Minutes = 1 }, ""},
		"a year":     {func(d *staffrequest.Deploy) { d.Minutes = 525_600 }, ""},
		"too long":   {func(d *staffrequest.Deploy) { d.Minutes = 525_601 }, "duration_minutes"},
		"approved":   {func(d *staffrequest.Deploy) { d.Status = staffrequest.Approved }, ""},
		"rejected":   {func(d *staffrequest.Deploy) { d.Status = staffrequest.Rejected }, ""},
		"unknown":    {func(d *staffrequest.Deploy) { d.Status = "OPEN" }, "status"},
	} {
		d := deploy()
		c.change(&d)
		if storetest.WantsFields(t, d.Check(), c.fields); t.Failed() {
			t.Fatal(name)
		}
	}
	v := staffrequest.VPN{Request: staffrequest.Request{Status: staffrequest.Pending, Type: "F"}, UserName: "a"}
	changed, err := staffrequest.VPNChange{UserName: new("b"), Comment: new("c")}.Apply(v)
	if err != nil || changed.UserName != "b" || changed.Comment != "c" || changed.Type != "F" {
		t.Errorf("%+v, %v", changed, err)
	}
	c := staffrequest.DeployChange{ServiceName: new("1"), OriginalServiceName: new("2"), BuildNumber: new("3"),
		Comment: new("4")}
	if d, err := c.Apply(deploy()); err != nil || d.ServiceName != "1" || d.OriginalServiceName != "2" ||
		d.BuildNumber != "3" || d.Comment != "4" || d.Minutes != 10 {
		t.Errorf("%+v, %v", d, err)
	}
}
