package rest

import "github.com/danielgtaylor/huma/v2"

// ExampleFile is a picture of one pixel as base64, the example of fields that hold a file.
const ExampleFile = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// TextExamples and NumberExamples are the examples of fields by their name, for the document. A field with an ambiguous
// name, such as name or code, has the tag example.
var (
	TextExamples = map[string]string{
		"action": "LOGIN", "actionCode": "LOGIN", "actionTitle": "Login", "body": "Do you want to log in?",
		"actorId": "01JD3X4Q7V0S8D4T2M6B9N1ZKA", "userId": "01JD3X4Q7V0S8D4T2M6B9N1ZKA",
		"cuserid": "01JD3X4Q7V0S8D4T2M6B9N1ZKA", "uuserid": "01JD3X4Q7V0S8D4T2M6B9N1ZKA",
		"challengeId": "01JD3XE5GN2D2R8A5PKM9C1YQF", "requestId": "01JD3XE5GNQ0V8X7C3W5T2B6RE",
		"methodId": "01JD3XE5GNZ4M7R8Q2TB6WV0XK", "sessionId": "01JD3XF9P2E6H4J8K3N5Q7S1TV",
		"sessionKey": "01JD3XF9P2E6H4J8K3N5Q7S1TV", "deviceId": "01JD3XG1R4A9B7C5D3E1F8G6H4",
		"id": "01JD3XE5GNZ4M7R8Q2TB6WV0XK", "entityId": "01JD3X4Q7V0S8D4T2M6B9N1ZKA",
		"address": "TAzaZg1EuULzZTuJtJdrBdbSjCp5AbZEVP", "currencyCode": "USDT", "networkCode": "TRX",
		"mintAddress": "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
		"appId":       "API", "label": "login-ip", "decidedBy": "login-ip",
		"brand": "Google", "model": "Pixel 9", "description": "My phone", "platform": "android",
		"deviceBrand": "Google", "deviceModel": "Pixel 9", "deviceDesc": "My phone",
		"roleCode":    "auditor",
		"countryCode": "TR", "countryName": "Türkiye", "ip": "203.0.113.7", "dateTime": "31.01.2026 13:00:00",
		"flagImage": "/flags/tr.svg", "pngFlagImage": "/flags/tr.png", "iosFlagImage": "/flags/tr.ios.png",
		"hint": "+90*****4567", "matchNumber": "42", "message": "the action could not be carried out",
		"methodCode": "SMS", "resourceCode": "POST /auth/login", "resourceName": "Log in",
		"resourceTypeCode": "POST", "target": "auditor", "detail": "label=login-ip",
		"hash":         "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"intentDigest": "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg",
		"node":         "01JD3XH2-a", "version": "v1.0.0", "base32": "JBSWY3DPEHPK3PXP",
		"recoveryCode": "abcde-fghij", "kid": "k7x2mvbq4nrt6wpy",
		"otpAuthUrl":   "otpauth://totp/Castellan:jane?secret=JBSWY3DPEHPK3PXP&issuer=Castellan",
		"otp_auth_url": "otpauth://totp/Castellan:jane?secret=JBSWY3DPEHPK3PXP&issuer=Castellan",
		"qrDataUrl":    "data:image/png;base64,iVBORw0KGgo=", "qr_data_url": "data:image/png;base64,iVBORw0KGgo=",
		"permission": "ALLOW", "roleId": "3", "resourceId": "27",
		"publicKey": "BEl62iUYgUivxIkv69yViEuiBIa-Ib9-SkvMeAtA3LFgDzkrxZJjSgSnfckjBJuBkr3qBUYIHBQFLXYp5Nksh8U",
		"email":     "jane@example.com", "method": "SMS", "value": "123456", "password": "correct horse battery",
		"passwordVerify": "correct horse battery", "oldPassword": "wrong mule battery", "type": "COMMON",
		"created_at": "2026-01-31T10:00:00.000Z", "updated_at": "2026-01-31T10:05:00.000Z",
		"createdAt": "2026-01-31T10:00:00.000Z", "lastSeenAt": "2026-01-31T10:05:00.000Z",
		"lastUsedAt": "2026-01-31T10:05:00.000Z", "at": "2026-01-31T10:00:00.000Z",
		"cdate": "2026-01-31T10:00:00.000Z", "udate": "2026-01-31T10:05:00.000Z",
		"usableFrom": "2026-02-01T10:00:00.000Z", "oldestAt": "2026-01-31T10:00:00.000Z",
		"lockedUntil": "2026-01-31T10:15:00.000Z",
		"startDate":   "2026-02-01T09:00:00.000Z", "endDate": "2026-02-08T09:00:00.000Z",
		"imageData": ExampleFile, "base64Data": ExampleFile, "base64String": ExampleFile,
		"title": "What we store", "content": "<p>Only what the service needs.</p>",
	}
	NumberExamples = map[string]int64{
		"id": 12, "roleId": 3, "resourceId": 27, "resourceTypeId": 2, "currencyId": 5, "networkId": 4, "policyId": 12,
		"createDateTimeStamp": 1769853600000, "updateDateTimeStamp": 1769853600000, "ts": 1769853600000,
		"timestamp": 1769853600000, "expireAt": 0, "expire": 180, "expireMs": 180000, "renewStart": 60,
		"renewStartMs": 60000, "limit": 10, "period": 60000, "used": 3, "resetMs": 42000, "required": 2,
		"contractId": 2, "orderNo": 3, "preffered": 0, "ended": 2, "rows": 1, "cols": 2, "status": 1, "moved": 0,
		"handedOver": 0, "lapses": 0,
	}
)

// exampleOf is the example of a field by its name, if it has the field's type; otherwise nil.
func exampleOf(s *huma.Schema, name string) []any {
	if text, ok := TextExamples[name]; ok && s.Type == "string" {
		return []any{text}
	}
	if n, ok := NumberExamples[name]; ok && s.Type == "integer" {
		return []any{n}
	}
	return nil
}
