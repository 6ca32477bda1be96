package web_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
)

func read(r *http.Request) map[string]any {
	in := map[string]any{}
	_ = json.NewDecoder(r.Body).Decode(&in)
	return in
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, code, message string, more map[string]any) {
	problem := map[string]any{
		"type":      "urn:castellan:problem:" + strings.ToLower(code),
		"title":     code,
		"status":    status,
		"code":      code,
		"detail":    message,
		"message":   message,
		"requestId": "req-1",
	}
	for key, value := range more {
		problem[key] = value
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(problem)
}

// token looks like a signed token; nothing here checks one.
func token(claims map[string]any) string {
	body, _ := json.Marshal(claims)
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA","kid":"test"}`))
	return head + "." + base64.RawURLEncoding.EncodeToString(body) + "." + base64.RawURLEncoding.EncodeToString(
		[]byte("signature"),
	)
}
