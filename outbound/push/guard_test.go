package push

import (
	"net/netip"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/outbound/fetch"
)

// An address that is not on the Internet is never dialled, in whatever spelling (SEC-37).
func TestGuardOfAddresses(t *testing.T) {
	public := `8.8.8.8:443 93.184.216.34:443 172.15.255.255:443 172.32.0.0:443 100.63.255.255:443 100.128.0.0:443
		192.167.255.255:443 [2606:4700::1111]:443 [2a00:1450::1]:443
		[::ffff:8.8.8.8]:443`
	private := `127.0.0.1:443 10.1.2.3:443 172.16.0.1:443 172.31.255.255:443 192.168.1.1:443 [fd00::1]:443
		100.64.0.1:443 [::1]:443 [::ffff:127.0.0.1]:443 [::ffff:10.0.0.1]:443
		8.8.8.8:80 8.8.8.8:22 10.1.2.3:8443`
	never := `0.0.0.0:443 169.254.169.254:443 169.254.0.1:443 [fe80::1]:443 [fe80::1%eth0]:443 224.0.0.1:443
		255.255.255.255:443 [ff02::1]:443 [::]:443 [::ffff:169.254.169.254]:443`
	translated := `[64:ff9b::7f00:1]:443 [64:ff9b:1::a00:1]:443 [2002:7f00:1::]:443 [2001::1]:443 [2001:db8::1]:443
		[fec0::1]:443 [::7f00:1]:443 198.18.0.1:443 192.0.2.1:443 198.51.100.1:443
		203.0.113.1:443 192.0.0.8:443 192.88.99.1:443 240.0.0.1:443 0.1.2.3:443`
	for _, c := range []struct {
		addresses        string
		strict, tolerant bool
	}{{public, true, true}, {private, false, true}, {never, false, false}} {
		for a := range strings.FieldsSeq(c.addresses) {
			storetest.Equal(t, (fetch.Guard{}).Judge("tcp", a, nil) == nil, c.strict, a, "may be called")
			if got := (fetch.Guard{Private: true}).Judge("tcp", a, nil) == nil; got != c.tolerant {
				t.Errorf("%s: may be called in a private network %v, want %v", a, got, c.tolerant)
			}
			here := netip.MustParseAddrPort(a).Addr().Unmap().IsLoopback()
			if got := (fetch.Guard{Loopback: true}).Judge("tcp", a, nil) == nil; got != here {
				t.Errorf("%s: may be called in the clear: %v", a, got)
			}
		}
	}
	for a := range strings.FieldsSeq(translated) {
		if (fetch.Guard{}).Judge("tcp", a, nil) == nil {
			t.Errorf("%s may be called", a)
		}
	}
	for _, a := range []string{"", "example.com:443", "8.8.8.8", "8.8.8.8:x"} {
		if (fetch.Guard{}).Judge("tcp", a, nil) == nil || (fetch.Guard{Private: true}).Judge("tcp", a, nil) == nil ||
			(fetch.Guard{Loopback: true}).Judge("tcp", a, nil) == nil {
			t.Errorf("%q may be called", a)
		}
	}
}

func TestListOfHosts(t *testing.T) {
	hosts := []string{"fcm.googleapis.com", "*.push.Apple.com"}
	for host, want := range map[string]bool{
		"fcm.googleapis.com": true, "FCM.googleapis.COM.": true, "web.push.apple.com": true, "a.b.push.apple.com": true,
		"push.apple.com": false, "evilpush.apple.com": false, "googleapis.com": false, "x.fcm.googleapis.com": false,
		"fcm.googleapis.com.evil.example": false, "": false,
	} {
		storetest.Equal(t, listed(hosts, host), want, host, "listed")
	}
	storetest.Equal(t, listed(nil, "anything.example"), true, "without a list a host is refused")
}

// The host of a target is the same, however the target spells it and whatever its port.
func TestHost(t *testing.T) {
	for target, want := range map[string]string{
		hook("https://a.example/x"):                                        "a.example",
		hook("https://A.Example.:8443/y?z"):                                "a.example",
		hook("http://127.0.0.1:80/"):                                       "127.0.0.1",
		hook("https://[2001:DB8:0:0::1]:443/"):                             "2001:db8::1",
		hook("https://[::ffff:192.0.2.1]/"):                                "192.0.2.1",
		hook("https://[fe80::1%25eth0]/"):                                  "fe80::1",
		hook("ftp://a.example/"):                                           "",
		"nonsense":                                                         "",
		`{"type":"webpush","endpoint":"https://push.example/1","keys":{}}`: "push.example",
	} {
		storetest.Equal(t, Host(target), want, target)
	}
}
