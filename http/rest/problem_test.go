package rest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// TestProblem: every code of the registry has its status and shape (D-GEN-09).
func TestProblem(t *testing.T) {
	for code, e := range registry {
		f := &fault.Error{Code: code, Message: "said", AttemptsLeft: new(2), RetryAfter: 1500 * time.Millisecond}
		status, body := Problem(f, "tr", "request-1")
		var p map[string]any
		storetest.Must(t, json.Unmarshal(body, &p))
		if status != e.status || p["status"] != float64(e.status) || p["code"] != string(code) || p["title"] != e.en ||
			p["detail"] != "said" || p["message"] != e.tr || p["attemptsLeft"] != 2.0 || p["requestId"] != "request-1" ||
			RetryAfter(f) != 2 {
			t.Errorf("%s: %d %s", code, status, body)
		}
		if want := "urn:castellan:problem:" + strings.ToLower(strings.ReplaceAll(string(code), "_", "-")); p["type"] != want {
			t.Errorf("type %v, want %s", p["type"], want)
		}
		if e.en == "" || e.tr == "" || e.ar == "" {
			t.Errorf("%s lacks a title", code)
		}
		shown, internal := FaultOf(fmt.Errorf("wrapped: %w", f))
		if own := code == fault.Internal; internal != own || (shown.Message == "said") == own {
			t.Errorf("%s: shown as %v, internal %v", code, shown, internal)
		}
	}
}

func TestRegistryIsComplete(t *testing.T) {
	if StatusOf("NO_SUCH_CODE") != 500 || StatusOf(fault.OTPInvalid) != 422 {
		t.Error("StatusOf")
	}
	for status, codes := range map[int]string{
		400: "INVALID_FIELD CHAR_LIMIT_EXCEEDED",
		401: "UNAUTHENTICATED TOKEN_EXPIRED TOKEN_REVOKED INVALID_CREDENTIALS DEVICE_SIGNATURE_REQUIRED " +
			"DEVICE_SIGNATURE_INVALID",
		403: "FORBIDDEN TENANT_MISMATCH ACCESS_DENIED GEO_BLOCKED IP_NOT_ALLOWED OTP_REQUIRED",
		404: "RECORD_NOT_FOUND CHALLENGE_NOT_FOUND METHOD_NOT_FOUND NOT_FOUND", 405: "METHOD_NOT_ALLOWED",
		408: "REQUEST_TIMEOUT",
		409: "RECORD_ALREADY_EXIST RECORD_LIMIT_REACHED INVALID_STATE CHALLENGE_NOT_COMPLETED CHALLENGE_CLOSED " +
			"METHOD_ALREADY_COMPLETED MFA_NOT_AVAILABLE TOTP_ALREADY_DEFINED TOTP_NOT_DEFINED RENEW_NOT_SUPPORTED " +
			"RENEW_CLOSED IDEMPOTENCY_CONFLICT",
		410: "CHALLENGE_EXPIRED METHOD_EXPIRED", 413: "PAYLOAD_TOO_LARGE", 415: "UNSUPPORTED_MEDIA",
		422: "WD_NETWORK_ASSET_MISMATCH OTP_INVALID RECOVERY_CODE_INVALID PASSWORD_REUSED PASSWORD_WRONG " +
			"IDEMPOTENCY_MISMATCH",
		423: "METHOD_LOCKED", 429: "RATE_LIMITED RENEW_TOO_EARLY", 431: "HEADERS_TOO_LARGE", 500: "INTERNAL",
		503: "UNAVAILABLE OVERLOADED DRAINING",
	} {
		for code := range strings.FieldsSeq(codes) {
			if e, ok := registry[fault.Code(code)]; !ok || e.status != status {
				t.Errorf("%s: %d, want %d", code, e.status, status)
			}
		}
	}
}

// A table is refused that would leave a language without a text.
func TestTablesOfPhrases(t *testing.T) {
	for _, table := range []string{
		"", "en\tar\ttr\n", "en\ttr\tar\nis odd\ttuhaf\n", "en\ttr\tar\nis odd\ttuhaf\t\n",
		"en\ttr\tar\nis %s\ttuhaf\tx\n", "en\ttr\tar\nis required\tzorunludur\tx\n",
		"en\ttr\tar\nmust be one of %s\tx %s\tx %s\n",
	} {
		if err := AddPhrases(table); err == nil {
			t.Errorf("%q was taken", table)
		}
	}
	for _, text := range []string{"", "is", `"a b"`, `"a b" is odd`, "must be one of ", "must be from 1", "is required!"} {
		if said, ok := Translated(text, "tr"); ok {
			t.Errorf("%q is said as %q", text, said)
		}
	}
}
