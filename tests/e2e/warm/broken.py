import json

print("before"
