#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""usage: django_throttle.py PORT LATENCY_MS RATE

A view of Django REST framework with AnonRateThrottle, served by Waitress."""
import sys
import time

import django
import waitress
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import re_path

PORT, LATENCY_MS, RATE = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
settings.configure(
    ROOT_URLCONF=__name__, ALLOWED_HOSTS=['*'], SECRET_KEY='of a benchmark', LOGGING_CONFIG=None,
    CACHES={'default': {'BACKEND': 'django.core.cache.backends.locmem.LocMemCache'}},
    REST_FRAMEWORK={'DEFAULT_THROTTLE_CLASSES': ['rest_framework.throttling.AnonRateThrottle'],
                    'DEFAULT_THROTTLE_RATES': {'anon': RATE}, 'UNAUTHENTICATED_USER': None, 'DEFAULT_AUTHENTICATION_CLASSES': []})
django.setup()

from rest_framework.response import Response  # noqa: E402  (needs the settings)
from rest_framework.views import APIView  # noqa: E402


class Page(APIView):
    def get(self, _request):
        time.sleep(LATENCY_MS / 1e3)
        return Response({'served': True})


urlpatterns = [re_path('', Page.as_view())]
waitress.serve(get_wsgi_application(), host='127.0.0.1', port=PORT, threads=64, channel_timeout=60, _quiet=True)
